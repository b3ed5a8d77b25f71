import { join } from "node:path";
import type { Enrollment } from "../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { dataDir } from "../profile.ts";

/** What `reeve device-agent` is told on the command line. */
export interface AgentFlags {
  join?: string;
  mode?: string;
  read: string[];
  write: string[];
}

/** The environment of the agent: what was said on the command line, over the rest, with a folder of its own. */
export function agentEnvironment({ mode, read, write }: AgentFlags, env: CommandContext["env"]): CommandContext["env"] {
  return {
    ...env,
    REEVE_DEVICE_STATE_DIR: env.REEVE_DEVICE_STATE_DIR || join(dataDir(env), "device-agent"),
    ...(mode === undefined ? {} : { REEVE_DEVICE_MODE: mode }),
    ...(read.length === 0 ? {} : { REEVE_DEVICE_READ_ROOTS: read.join(":") }),
    ...(write.length === 0 ? {} : { REEVE_DEVICE_WRITE_ROOTS: write.join(":") }),
  };
}

/** What a person at the device sees while an operator has to confirm it. */
export function pendingText({ id, name, fingerprint }: Enrollment): string {
  return (
    `${name} waits to be confirmed. This machine's fingerprint is\n\n  ${fingerprint}\n\n` +
    `An operator compares it and lets the device in, from anywhere:\n\n  reeve device confirm ${id}\n\n`
  );
}
