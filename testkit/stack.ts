import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { writeProfile } from "../cli/profile.ts";
import type { FirstTokens } from "../cli/stack/first-tokens.ts";
import { prepareMachineTokens, runTokens } from "../cli/stack/machine-tokens.ts";
import { type StackOptions, startStack } from "../cli/stack/stack.ts";
import { Mode } from "../gen/ts/reeve/device/v1/device_pb.ts";
import { createLogger } from "../lib/log/log.ts";

/** A control plane and a device in this process, as `reeve up` starts them, in a folder of their own. */
export interface TestStack {
  registry: { url: string };
  policy: { url: string };
  agentService: { url: string };
  /** Bearer tokens, by the role of their holder. */
  tokens: FirstTokens;
  /** The environment of an operator at this machine: the profile has the rest. */
  operator: { REEVE_DATA_DIR: string; REEVE_TOKEN: string };
  /** The environment of the person whose machine it is: nothing is set, and the profile has all. */
  owner: { REEVE_DATA_DIR: string };
  /** The environment of an agent. */
  agent: { REEVE_DATA_DIR: string; REEVE_TOKEN: string };
  /** A folder that tools may read and write. */
  workFolder: string;
  /** The folder of tokens, keys and databases. */
  dataFolder: string;
  /** Stops the services and leaves their files. Safe to repeat. */
  stop(): Promise<void>;
  /** Stops the services and takes everything away. */
  close(): Promise<void>;
}

/** Starts one. Default: no log, the shipped policy, and programs get this process's environment. */
export async function startTestStack(
  options: Partial<Pick<StackOptions, "logger" | "device" | "policyFile" | "env" | "providers">> = {},
): Promise<TestStack> {
  const folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-cli-")));
  const dataFolder = join(folder, "data");
  const workFolder = await realpath(await mkdtemp(join(tmpdir(), "reeve-work-")));
  const stack = await startStack({
    dataDir: dataFolder,
    ports: { registry: 0, policy: 0, device: 0 },
    deviceName: "this",
    mode: Mode.ALL,
    readRoots: [],
    writeRoots: [workFolder],
    env: process.env,
    logger: createLogger({ service: "test", level: "silent" }),
    agent: { port: 0, agentsDir: join(dataFolder, "agents"), tokens: () => runTokens(dataFolder) },
    ...options,
  });
  const { issued: tokens, profile } = await prepareMachineTokens(stack.tokens, dataFolder);
  if (tokens === undefined) throw new Error("the folder is not new");
  await writeProfile(dataFolder, {
    registry: stack.registryUrl,
    policy: stack.policyUrl,
    registrySocket: stack.sockets.registry,
    policySocket: stack.sockets.policy,
    ...(stack.agentUrl !== undefined && { agent: stack.agentUrl }),
    ...(stack.sockets.agent !== undefined && { agentSocket: stack.sockets.agent }),
    token: profile,
    stateDir: dataFolder,
  });
  return {
    registry: { url: stack.registryUrl },
    policy: { url: stack.policyUrl },
    agentService: { url: stack.agentUrl ?? "" },
    tokens,
    operator: { REEVE_DATA_DIR: dataFolder, REEVE_TOKEN: tokens.operator },
    owner: { REEVE_DATA_DIR: dataFolder },
    agent: { REEVE_DATA_DIR: dataFolder, REEVE_TOKEN: tokens.agent },
    workFolder,
    dataFolder,
    stop: () => stack.close(),
    async close() {
      await stack.close();
      await rm(folder, { recursive: true, force: true });
      await rm(workFolder, { recursive: true, force: true });
    },
  };
}
