import { copyFile, mkdir, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { issueFirstTokens } from "../../cli/stack/first-tokens.ts";
import { startStack } from "../../cli/stack/stack.ts";
import { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { createNatsBus } from "../../lib/events/nats-bus.ts";
import { createLogger } from "../../lib/log/log.ts";
import { DEFAULT_POLICY_FILE } from "../../services/policy/rules/default-policy.ts";
import { startControlPlane } from "../../testkit/control-plane.ts";
import { startNatsServer } from "../../testkit/nats-server.ts";
import { makePath } from "../../testkit/programs.ts";
import { type Backend, PROGRAMS } from "./suite/scene.ts";
import { describeScenarios } from "./suite.ts";

describeScenarios("a process each, events over NATS", startProcesses, { bus: true });
describeScenarios("all in this process", startInProcess, { bus: false });

async function startProcesses(): Promise<Backend> {
  await using parts = new AsyncDisposableStack();
  const { folder, policyFile, path } = await prepare();
  parts.defer(() => rm(folder, { recursive: true }));
  const nats = parts.adopt(await startNatsServer(), (server) => server.close());
  const plane = await startControlPlane({ policyFile, natsUrl: nats.url, env: { PATH: path } });
  parts.defer(() => plane.close());
  const bus = parts.adopt(await createNatsBus({ servers: [nats.url] }), (one) => one.close());
  const started = parts.move();
  return { ...plane, policyFile, bus, close: () => started.disposeAsync() };
}

async function startInProcess(): Promise<Backend> {
  await using parts = new AsyncDisposableStack();
  const { folder, policyFile, path } = await prepare();
  parts.defer(() => rm(folder, { recursive: true }));
  const work = join(folder, "work");
  await mkdir(work);
  const stack = await startStack({
    dataDir: join(folder, "state"),
    ports: { registry: 0, policy: 0, device: 0 },
    deviceName: "this",
    mode: Mode.ALL,
    readRoots: [],
    writeRoots: [work],
    policyFile,
    env: { PATH: path, HOME: folder },
    logger: createLogger({ service: "reeve", level: "silent" }),
  });
  parts.defer(() => stack.close());
  const tokens = issueFirstTokens(stack.tokens);
  if (tokens === undefined) throw new Error("the folder is not new");
  const started = parts.move();
  return {
    registry: { url: stack.registryUrl },
    policy: { url: stack.policyUrl },
    tokens,
    work,
    policyFile,
    close: () => started.disposeAsync(),
  };
}

/** A folder with a policy file that can be changed, and a PATH without container engines. */
async function prepare(): Promise<{ folder: string; policyFile: string; path: string }> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-scenarios-"));
  const policyFile = join(folder, "policy.yaml");
  await copyFile(DEFAULT_POLICY_FILE, policyFile);
  return { folder, policyFile, path: await makePath(join(folder, "bin"), PROGRAMS) };
}
