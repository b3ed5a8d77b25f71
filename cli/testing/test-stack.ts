import { mkdtemp, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { createLogger, type Logger } from "../../lib/log/log.ts";
import { writeProfile } from "../profile.ts";
import { prepareMachineTokens } from "../stack/machine-tokens.ts";
import { startStack } from "../stack/stack.ts";

/** A control plane and a device on loopback, in a folder of their own. */
export interface TestStack {
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

/** Starts one. It logs nothing unless it is given a logger. */
export async function startTestStack(options: { logger?: Logger } = {}): Promise<TestStack> {
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
    logger: options.logger ?? createLogger({ service: "test", level: "silent" }),
  });
  const { issued: tokens, profile } = await prepareMachineTokens(stack.tokens, dataFolder);
  if (tokens === undefined) throw new Error("the folder is not new");
  await writeProfile(dataFolder, {
    registry: stack.registryUrl,
    policy: stack.policyUrl,
    registrySocket: stack.sockets.registry,
    policySocket: stack.sockets.policy,
    token: profile,
    stateDir: dataFolder,
  });
  return {
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
