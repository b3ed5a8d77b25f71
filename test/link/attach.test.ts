import { EventEmitter } from "node:events";
import { cp } from "node:fs/promises";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { expect, test, vi } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { AttachService } from "../../gen/ts/reeve/device/v1/attach_service_pb.ts";
import { ExecutionOutcome } from "../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { fault, faultDetail } from "../../lib/fault/fault.ts";
import { testAuthority, testMaterial } from "../../lib/identity/testdata/certificates.ts";
import { staticTls } from "../../lib/identity/tls-source.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { REGISTRY } from "../../lib/server/tls.fixture.ts";
import { openTestAgent } from "../../services/device-agent/testing/test-agent.ts";
import type { DeviceSession } from "../../services/registry/devices/session.ts";
import { eventually } from "../../testkit/eventually.ts";
import { startTcpProxy } from "../../testkit/tcp-proxy.ts";
import { attach, folder, linkTo, openPoint, type Seen } from "./ways.ts";

const nothingSeen = (): Seen => ({ hellos: [], downs: 0, deviceEnds: [] });

test("says how often it has dialed, over resets and restarts", async () => {
  await using parts = new AsyncDisposableStack();
  const device = parts.use(await openTestAgent());
  const hellos: DeviceSession[] = [];
  const { server } = await openPoint(parts, device.agent.deviceId, { admit: (session) => void hellos.push(session) });
  const proxy = parts.use(await startTcpProxy({ port: server.port }));
  const first = await attach(parts, device, { ports: [proxy.port] });
  await eventually(() => expect(hellos).toHaveLength(1));
  proxy.cut();
  await eventually(() => expect(hellos).toHaveLength(2));
  await first.close();
  await device.restart();
  await attach(parts, device, { ports: [proxy.port] });
  await eventually(() => expect(hellos).toHaveLength(3));
  const counts = hellos.map(({ hello }) => hello.attachCount);
  expect(counts).toEqual([...new Set(counts)].toSorted((a, b) => a - b));
  expect(hellos.every(({ deviceId }) => deviceId === device.agent.deviceId)).toBe(true);
});

test("a copied folder shows a number that was shown before, and is refused by name", async () => {
  await using parts = new AsyncDisposableStack();
  const device = parts.use(await openTestAgent());
  const { deviceId } = device.agent;
  const counts: number[] = [];
  const { server } = await openPoint(parts, deviceId, {
    admit({ hello: { attachCount } }) {
      const cloned = counts.includes(attachCount);
      counts.push(attachCount);
      if (cloned) throw fault(ErrorReason.IDENTITY_REFUSED, { why: "cloned", identity: deviceId });
    },
  });
  const copy = join(await folder(parts), "state");
  await cp(device.config.stateDir, copy, { recursive: true });
  const original = await attach(parts, device, { ports: [server.port] });
  await eventually(() => expect(original.isAttached).toBe(true));
  await eventually(() => expect(counts).toEqual([1]));
  const clone = await attach(parts, device, { ports: [server.port], stateDir: copy });
  await eventually(() => expect(counts.slice(0, 2)).toEqual([1, 1]));
  await eventually(() => expect(clone.isAttached).toBe(false));
  expect(original.isAttached).toBe(true);
});

test("a newer stream of a device ends the older one, and the link goes on", async () => {
  await using parts = new AsyncDisposableStack();
  const device = parts.use(await openTestAgent());
  const { deviceId } = device.agent;
  const onGone = vi.fn();
  const point = await openPoint(parts, deviceId, { onGone });
  const { sessions, server } = point;
  const seen = nothingSeen();
  const link = linkTo(parts, point, seen);
  const proxy = parts.use(await startTcpProxy({ port: server.port }));
  await attach(parts, device, { ports: [proxy.port], seen });
  await eventually(() => expect(seen.hellos).toHaveLength(1));
  proxy.retarget(1);
  await attach(parts, device, { ports: [server.port], stateDir: await folder(parts) });
  await eventually(() => expect(seen.hellos).toHaveLength(2));
  await eventually(() => expect(seen.deviceEnds.length).toBeGreaterThan(0));
  expect([sessions.size, onGone.mock.calls]).toEqual([1, []]);
  const start = await device.grants.start({ tool: "device.ping", args: { text: "still here" } });
  expect(await link.start(start, () => undefined)).toMatchObject({ kind: "finished" });
});

test("takes a new connection where its own has stopped answering, before that is given up for its silence", async () => {
  await using parts = new AsyncDisposableStack();
  const device = parts.use(await openTestAgent());
  const authority = await testAuthority();
  const heartbeatMs = 800;
  const tls = staticTls(await testMaterial(authority, REGISTRY));
  const point = await openPoint(parts, device.agent.deviceId, { heartbeatMs, tls });
  const seen = nothingSeen();
  linkTo(parts, point, seen);
  const proxy = parts.use(await startTcpProxy({ port: point.server.port }));
  await attach(parts, device, { ports: [proxy.port], ca: authority.certificate, heartbeatMs, seen });
  await eventually(() => expect(seen.hellos).toHaveLength(1));
  proxy.blackhole();
  proxy.restore();
  await eventually(() => expect(seen.hellos).toHaveLength(2));
  expect(seen.deviceEnds.map(String)).toEqual([expect.stringContaining("does not answer on this connection")]);
});

test("goes elsewhere where it learns to, and what runs is still reported on the old stream", async () => {
  await using parts = new AsyncDisposableStack();
  const device = parts.use(await openTestAgent());
  const { deviceId } = device.agent;
  const points = [await openPoint(parts, deviceId), await openPoint(parts, deviceId)];
  const seen = points.map(nothingSeen);
  const links = points.map((point, index) => linkTo(parts, point, seen[index] ?? nothingSeen()));
  await attach(parts, device, { ports: points.map(({ server }) => server.port) });
  await eventually(() => expect(points.filter(({ sessions }) => sessions.get(deviceId))).toHaveLength(1));
  const old = points.findIndex(({ sessions }) => sessions.get(deviceId));
  const next = 1 - old;
  const ready = Promise.withResolvers<void>();
  const waiting = { argv: ["sh", "-c", "echo ready; until [ -e go ]; do sleep 0.02; done"] };
  const ended = links[old]?.start(await device.grants.start({ tool: "exec", args: waiting }), async () =>
    ready.resolve(),
  );
  await ready.promise;
  points[old]?.sessions.drain();
  await eventually(() => expect(seen[next]?.hellos).toHaveLength(1));
  expect(points[old]?.sessions.get(deviceId)).toBeDefined();
  await device.execute("fs.write", { path: `${device.work}/go` });
  expect(await ended).toMatchObject({ kind: "finished", finished: { outcome: ExecutionOutcome.SUCCEEDED } });
  await points[old]?.sessions.close();
  const ping = await device.grants.start({ tool: "device.ping" });
  expect(await links[next]?.start(ping, () => undefined)).toMatchObject({ kind: "finished" });
  expect(points[next]?.sessions.get(deviceId)).toBeDefined();
});

test("dials again when its certificate was replaced, and what runs learns on the new stream", async () => {
  await using parts = new AsyncDisposableStack();
  const device = parts.use(await openTestAgent());
  const { deviceId } = device.agent;
  const point = await openPoint(parts, deviceId);
  const { server } = point;
  const seen = nothingSeen();
  const link = linkTo(parts, point, seen);
  const renewed = new EventEmitter();
  const onRenewed = (listener: () => void) => {
    renewed.on("change", listener);
    return () => void renewed.off("change", listener);
  };
  const attachment = await attach(parts, device, { ports: [server.port], seen, onRenewed });
  await eventually(() => expect(seen.hellos).toHaveLength(1));
  const ready = Promise.withResolvers<void>();
  const waiting = { argv: ["sh", "-c", "echo ready; until [ -e go ]; do sleep 0.02; done"] };
  const ended = link.start(await device.grants.start({ tool: "exec", args: waiting }), async () => ready.resolve());
  await ready.promise;
  renewed.emit("change");
  await eventually(() => expect(seen.hellos).toHaveLength(2));
  await device.execute("fs.write", { path: `${device.work}/go` });
  expect(await ended).toMatchObject({ kind: "finished", finished: { outcome: ExecutionOutcome.SUCCEEDED } });
  await attachment.close();
  expect(renewed.listenerCount("change")).toBe(0);
});

test("reports when a device has come and gone, and ends a stream with a fault when it is asked to", async () => {
  await using parts = new AsyncDisposableStack();
  const device = parts.use(await openTestAgent());
  const { deviceId } = device.agent;
  const said: string[] = [];
  const { sessions, server } = await openPoint(parts, deviceId, {
    onAdmitted: ({ hello }) => said.push(`attached ${hello.attachCount}`),
    onGone: (session) => said.push(`gone ${session.deviceId}`),
  });
  const seen = nothingSeen();
  const attachment = await attach(parts, device, { ports: [server.port], seen });
  await eventually(() => expect(said).toEqual(["attached 1"]));
  sessions.get(deviceId)?.end(fault(ErrorReason.DEVICE_LOCKED, { device: deviceId, why: "operator" }));
  await eventually(() => expect(said.slice(0, 3)).toEqual(["attached 1", `gone ${deviceId}`, "attached 2"]));
  expect(faultDetail(seen.deviceEnds[0])?.reason).toBe(ErrorReason.DEVICE_LOCKED);
  await attachment.close();
  await eventually(() => expect(said.at(-1)).toBe(`gone ${deviceId}`));
  expect(sessions.size).toBe(0);
});

test("refuses a stream whose manifest is another device's, and it takes no other's place", async () => {
  await using parts = new AsyncDisposableStack();
  const device = parts.use(await openTestAgent());
  const { sessions, server } = await openPoint(parts, "dev-0000000000000000");
  const seen = nothingSeen();
  await attach(parts, device, { ports: [server.port], seen });
  await eventually(() => expect(seen.deviceEnds.length).toBeGreaterThan(1));
  const detail = faultDetail(seen.deviceEnds[0]);
  expect([detail?.reason, detail?.metadata.why]).toEqual([ErrorReason.IDENTITY_REFUSED, "role"]);
  expect(sessions.size).toBe(0);
});

test("ends a stream that does not say whose it is", async () => {
  await using parts = new AsyncDisposableStack();
  const { server } = await openPoint(parts, "dev-0000000000000000", { helloWaitMs: 50 });
  const transport = createServiceTransport({ baseUrl: server.url, protocol: "grpc" });
  parts.defer(() => transport.close());
  const answers = Array.fromAsync(createClient(AttachService, transport).attach(silence()));
  await expect(answers).rejects.toThrow("has not said who it is");
});

test("ends a dial that was not let in yet when the device dials again", async () => {
  await using parts = new AsyncDisposableStack();
  const { server } = await openPoint(parts, "dev-0000000000000000");
  const dial = () => {
    const transport = createServiceTransport({ baseUrl: server.url, protocol: "grpc" });
    parts.defer(() => transport.close());
    return Array.fromAsync(createClient(AttachService, transport).attach(silence()));
  };
  const first = dial();
  await new Promise((resolve) => setTimeout(resolve, 100));
  dial().catch(() => undefined);
  await expect(first).rejects.toThrow("has dialed again");
});

test("lets a device dial only so often", async () => {
  await using parts = new AsyncDisposableStack();
  const { server } = await openPoint(parts, "dev-0000000000000000", { helloWaitMs: 10, rate: { burst: 2 } });
  const transport = createServiceTransport({ baseUrl: server.url, protocol: "grpc" });
  parts.defer(() => transport.close());
  const reasons = [];
  for (let dial = 0; dial < 3; dial++) {
    const answers = Array.fromAsync(createClient(AttachService, transport).attach(silence()));
    reasons.push(faultDetail(await answers.catch((error: unknown) => error))?.reason);
  }
  expect(reasons).toEqual([ErrorReason.NOT_READY, ErrorReason.NOT_READY, ErrorReason.RATE_LIMITED]);
});

async function* silence() {
  await new Promise((resolve) => setTimeout(resolve, 20_000));
  yield {};
}
