import { mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type Run, RunState } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import { LinkState } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { eventually } from "../../testkit/eventually.ts";
import { openNats } from "../../testkit/nats-access.ts";
import { startNatsServer } from "../../testkit/nats-server.ts";
import { startPostgresServer } from "../../testkit/postgres-server.ts";
import { makeServiceAuthority } from "../../testkit/service-certificates.ts";
import type { ServiceProcess } from "../../testkit/service-process.ts";
import { startTcpProxy, type TcpProxy } from "../../testkit/tcp-proxy.ts";
import { type DurablePlane, startDurablePlane } from "./durable-plane.ts";
import { appendOnce, linesOf, startRun, untilEnded, untilWaiting } from "./runs.ts";

const parts = new AsyncDisposableStack();
let plane: DurablePlane;
/** The worker's way to the registry: to the first replica, until the test leads it elsewhere. */
let way: TcpProxy;
/** The replica that the worker talks to, and the one that the device has its session with. */
let near: ServiceProcess;
let far: ServiceProcess;
/** An operator at each of them. */
let atNear: Caller;
let atFar: Caller;

beforeAll(async () => {
  const postgres = parts.adopt(await startPostgresServer(), (one) => one.close());
  const nats = parts.adopt(await startNatsServer(), (one) => one.close());
  const certificates = await mkdtemp(join(tmpdir(), "reeve-durable-"));
  parts.defer(() => rm(certificates, { recursive: true, force: true }));
  plane = await startDurablePlane({
    registries: 2,
    registryEnv: { REEVE_REPLICA_LEASE: "1s" },
    devices: { this: { link: 1 } },
    postgres,
    nats: openNats(nats),
    authority: await makeServiceAuthority(certificates),
    async registryUrl({ registries: [first] }) {
      way = parts.adopt(await startTcpProxy({ port: portOf(first) }), (one) => one.close());
      return `https://127.0.0.1:${way.port}`;
    },
  });
  parts.defer(() => plane.close());
  const [first, second] = plane.plane.registries;
  if (second === undefined) throw new Error("two registries were wanted");
  [near, far] = [first, second];
  [atNear, atFar] = [operatorAt(near), operatorAt(far)];
});
afterAll(() => parts.disposeAsync());

function portOf({ url }: ServiceProcess): number {
  return Number(new URL(url).port);
}

function operatorAt(registry: ServiceProcess): Caller {
  const { policy, tokens, ca } = plane.plane;
  return callerOf({ registry, policy }, tokens.operator, ca);
}

/** The replica that has the device's session. */
async function holder(at: Caller): Promise<string | undefined> {
  const { device } = await at.registry.getDevice({ device: "this" });
  expect(device?.link).toBe(LinkState.ONLINE);
  return device?.replicaId;
}

/** A run with a call that is held, and the call's id. */
async function heldRun(mark: string): Promise<{ runId: string; callId: string }> {
  await plane.playModel([{ toolUses: [appendOnce(mark)] }, { text: "Appended." }]);
  const runId = await startRun(plane, { prompt: "Append.", devices: ["this"] });
  const { what, callId } = await untilWaiting(plane, runId);
  expect(what).toBe("held");
  return { runId, callId };
}

async function expectDone(run: Run, mark: string): Promise<void> {
  expect(run.status).toMatchObject({
    state: RunState.SUCCEEDED,
    text: "Appended.",
    calls: [{ state: "succeeded", isError: false }],
  });
  expect(await linesOf(mark)).toEqual(["ran"]);
}

test("a call's end reaches the run over another replica than the one that the device is at", async () => {
  expect(await holder(atNear)).toBe(await holder(atFar));
  const mark = join(plane.plane.work, "across");
  const { runId, callId } = await heldRun(mark);
  await approveCall(atFar, callId);
  await expectDone(await untilEnded(plane, runId), mark);
});

test("a run goes on over another replica after its own was killed while a call was held, and acts once", async () => {
  const before = await holder(atFar);
  const mark = join(plane.plane.work, "killed");
  const { runId, callId } = await heldRun(mark);
  way.retarget(portOf(far));
  await near.kill();
  await eventually(() => expect(far.log.some((line) => line.includes("calls claimed from"))).toBe(true));
  await approveCall(atFar, callId);
  await expectDone(await untilEnded(plane, runId), mark);
  expect(near.running).toBe(false);
  // The session was at the other one all the time.
  expect(await holder(atFar)).toBe(before);
});
