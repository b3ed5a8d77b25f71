import { existsSync } from "node:fs";
import { join, resolve } from "node:path";
import { ACCEPTED_FILE } from "../../lib/plugin/accepted.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { dataDir } from "../profile.ts";

/** The option that names a device's state folder. */
export interface StateDirFlag {
  stateDir?: string;
}

/**
 * The file with what was accepted on this machine: in the state folder that is named, else in the one that there is. Throws a
 * UsageError where there are two.
 */
export function acceptedFile({ stateDir }: StateDirFlag, { env }: CommandContext): string {
  const named = stateDir || env.REEVE_DEVICE_STATE_DIR;
  if (named) return join(resolve(named), ACCEPTED_FILE);
  const [ofUp, ofJoined] = [join(dataDir(env), "device"), join(dataDir(env), "device-agent")];
  if (existsSync(ofUp) && existsSync(ofJoined))
    throw new UsageError("this machine has two devices, so say which", [
      `--state-dir ${ofUp}`,
      `--state-dir ${ofJoined}`,
    ]);
  return join(existsSync(ofJoined) ? ofJoined : ofUp, ACCEPTED_FILE);
}
