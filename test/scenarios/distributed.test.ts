import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { getCACertificates, setDefaultCACertificates } from "node:tls";
import { createNatsBus } from "../../lib/events/nats-bus.ts";
import { DEFAULT_POLICY_FILE } from "../../services/policy/rules/default-policy.ts";
import { startDistributed } from "../../testkit/distributed.ts";
import { makePath } from "../../testkit/programs.ts";
import { type Backend, PROGRAMS } from "./suite/scene.ts";
import { describeScenarios } from "./suite.ts";

describeScenarios("two registries, two policies, PostgreSQL, NATS and three devices, with mTLS", startMany, {
  bus: true,
});

async function startMany(): Promise<Backend> {
  await using parts = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "reeve-scenarios-"));
  parts.defer(() => rm(folder, { recursive: true }));
  const policyFile = join(folder, "policy.yaml");
  await copyFile(DEFAULT_POLICY_FILE, policyFile);
  const path = await makePath(join(folder, "bin"), PROGRAMS);
  const many = await startDistributed({ policyFile, deviceEnv: { PATH: path } });
  parts.defer(() => many.close());
  // A caller by URL alone, as `fetch` is, trusts the authority of the services from here on.
  setDefaultCACertificates([...getCACertificates("default"), many.ca]);
  const { user, pass } = many.nats.login;
  const bus = parts.adopt(
    await createNatsBus({
      servers: [`tls://127.0.0.1:${many.nats.port}`],
      user,
      pass,
      tls: { caFile: many.authority.caFile },
    }),
    (one) => one.close(),
  );
  const started = parts.move();
  const { registry, policy, policies, tokens } = many;
  const work = many.devices[0]?.work ?? "";
  const devices = many.devices.map(({ name }) => name).toSorted();
  return { registry, policy, policies, tokens, devices, work, policyFile, bus, close: () => started.disposeAsync() };
}
