import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createNatsBus } from "../../lib/events/nats-bus.ts";
import { DEFAULT_POLICY_FILE } from "../../services/policy/rules/default-policy.ts";
import { startControlPlane } from "../../testkit/control-plane.ts";
import { openNats } from "../../testkit/nats-access.ts";
import { startNatsServer } from "../../testkit/nats-server.ts";
import { makePath } from "../../testkit/programs.ts";
import { startTestStack } from "../../testkit/stack.ts";
import { type Backend, PROGRAMS } from "./suite/scene.ts";
import { describeScenarios } from "./suite.ts";

describeScenarios("a process each, events over NATS", startProcesses, { bus: true });
describeScenarios("all in this process", startInProcess, { bus: false });

async function startProcesses(): Promise<Backend> {
  await using parts = new AsyncDisposableStack();
  const { folder, policyFile, path } = await prepare();
  parts.defer(() => rm(folder, { recursive: true }));
  const nats = parts.adopt(await startNatsServer(), (server) => server.close());
  const { registry, policy, tokens, work, close } = await startControlPlane({
    policyFile,
    nats: openNats(nats),
    env: { PATH: path },
  });
  parts.defer(close);
  const bus = parts.adopt(await createNatsBus({ servers: [nats.url] }), (one) => one.close());
  const started = parts.move();
  return { registry, policy, tokens, work, policyFile, bus, close: () => started.disposeAsync() };
}

async function startInProcess(): Promise<Backend> {
  await using parts = new AsyncDisposableStack();
  const { folder, policyFile, path } = await prepare();
  parts.defer(() => rm(folder, { recursive: true }));
  const { registry, policy, tokens, workFolder, close } = await startTestStack({
    policyFile,
    env: { PATH: path, HOME: folder },
  });
  parts.defer(close);
  const started = parts.move();
  return { registry, policy, tokens, work: workFolder, policyFile, close: () => started.disposeAsync() };
}

/** A folder with a policy file that can be changed, and a PATH without container engines. */
async function prepare(): Promise<{ folder: string; policyFile: string; path: string }> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-scenarios-"));
  const policyFile = join(folder, "policy.yaml");
  await copyFile(DEFAULT_POLICY_FILE, policyFile);
  return { folder, policyFile, path: await makePath(join(folder, "bin"), PROGRAMS) };
}
