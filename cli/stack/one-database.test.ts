import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, expect, test } from "vitest";
import { completeCall } from "../../client/complete-call.ts";
import { registryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import type { ExchangeResponse } from "../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { createInProcessBus } from "../../lib/events/in-process-bus.ts";
import { createLogger } from "../../lib/log/log.ts";
import { inMemoryTransport } from "../../lib/server/in-memory.fixture.ts";
import { sqliteWriterOf } from "../../lib/store/database.ts";
import { createDeviceAgent } from "../../services/device-agent/service.ts";
import { createPolicyService } from "../../services/policy/service.ts";
import type { PolicyDialer } from "../../services/registry/policy-client/policy-link.ts";
import { createRegistry } from "../../services/registry/service.ts";
import { OPERATOR } from "../../testkit/in-memory-plane.ts";
import { type OneDatabase, openOneDatabase } from "./one-database.ts";

let parts = new AsyncDisposableStack();
afterEach(async () => {
  const opened = parts.move();
  parts = new AsyncDisposableStack();
  await opened.disposeAsync();
});

/** Policy, a device and a registry on one database; `onCommit` is called after each of its commits. */
async function start(options: { policy?: PolicyDialer; onCommit(one: OneDatabase): Promise<void> }) {
  const folder = await mkdtemp(join(tmpdir(), "reeve-one-"));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  const logger = createLogger({ service: "test", level: "silent" });
  const bus = createInProcessBus();
  const one = parts.adopt(await openOneDatabase(folder, logger), (database) => database.close());
  const policy = parts.adopt(
    await createPolicyService({ config: { stateDir: join(folder, "policy") }, database: one.policy, logger, bus }),
    (service) => service.close(),
  );
  const roots = { readRoots: [], writeRoots: [], denied: [folder] };
  const device = parts.adopt(
    await createDeviceAgent({
      config: { stateDir: join(folder, "device"), name: "this", mode: Mode.ALL, labels: {}, ...roots },
      grantKeys: policy.grantKeys,
      env: process.env,
      logger,
    }),
    (service) => service.close(),
  );
  const registry = parts.adopt(
    await createRegistry({
      config: { stateDir: join(folder, "registry"), localDevice: "this" },
      database: one.registry,
      policy: options.policy ?? policy.link("registry"),
      devices: new Map([["this", device.link]]),
      bus,
      logger,
    }),
    (service) => service.close(),
  );
  const writer = sqliteWriterOf(one.registry.db);
  if (writer === undefined) throw new Error("the database is not SQLite");
  const { transact } = writer;
  writer.transact = async (work) => {
    const result = await transact(work);
    await options.onCommit(one);
    return result;
  };
  return registryClient(inMemoryTransport(registry.routes, { principal: OPERATOR }));
}

test("a call and its decision share a commit, and no decision is committed before its call", async () => {
  const seen: { calls: number; decisions: number }[] = [];
  const client = await start({
    async onCommit({ registry, policy }) {
      const calls = await registry.db.selectFrom("calls").select("id").execute();
      const decisions = await policy.db.selectFrom("decisions").select("call_id").execute();
      seen.push({ calls: calls.length, decisions: decisions.length });
    },
  });
  const ping = async () => {
    const { call } = await client.callTool({ tool: "device.ping", params: {} });
    return call?.status?.state;
  };
  for (let i = 0; i < 10; i++) expect(await ping()).toBe(CallState.SUCCEEDED);
  expect(new Set(await Promise.all(Array.from({ length: 20 }, ping)))).toEqual(new Set([CallState.SUCCEEDED]));
  expect(seen.filter(({ calls, decisions }) => decisions > calls)).toEqual([]);
  expect(seen.at(-1)).toEqual({ calls: 30, decisions: 30 });
  const together = seen.filter(({ calls, decisions }, at) => {
    const before = seen[at - 1] ?? { calls: 0, decisions: 0 };
    return calls > before.calls && decisions > before.decisions;
  });
  expect(together.length).toBeGreaterThan(0);
});

test("a call is on disk where policy does not answer, as received and then as failed", async () => {
  async function* silent(_: unknown, signal: AbortSignal): AsyncIterable<ExchangeResponse> {
    await new Promise((resolve) => signal.addEventListener("abort", resolve, { once: true }));
    yield* [];
  }
  const states: number[] = [];
  const client = await start({
    policy: silent,
    async onCommit({ registry }) {
      const row = await registry.db.selectFrom("calls").select("state").executeTakeFirst();
      if (row !== undefined && row.state !== states.at(-1)) states.push(row.state);
    },
  });
  const { call } = await client.callTool({ tool: "device.ping", params: {} });
  if (call === undefined) throw new Error("there is no call in the answer");
  const { status } = completeCall(call);
  expect([status.state, status.error?.reason]).toEqual([CallState.FAILED, ErrorReason.POLICY_UNAVAILABLE]);
  expect(states).toEqual([CallState.RECEIVED, CallState.FAILED]);
});
