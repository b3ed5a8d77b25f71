import { existsSync } from "node:fs";
import { cp, readFile, rm } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { LinkMode, LinkState } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { fault } from "../../lib/fault/fault.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { openCallStream, printedIn } from "../../testkit/call-stream.ts";
import { eventually } from "../../testkit/eventually.ts";
import {
  type AttachedDevice,
  online,
  type Replica,
  type ReplicaScene,
  startReplicaScene,
} from "../../testkit/replicas.ts";

let scene: ReplicaScene;
let a: Replica;
let b: Replica;
let nas: AttachedDevice;
let count = 0;
let callId: string;
let mark: string;

beforeAll(async () => {
  scene = await startReplicaScene();
  [a, b] = await Promise.all([scene.replica(), scene.replica()]);
  nas = await scene.device("nas", [b.url]);
  await Promise.all([online(a, "nas", b), online(b, "nas", b)]);
});
afterAll(() => scene?.close());
beforeEach(() => {
  callId = `cross-${++count}`;
  mark = join(nas.work, callId);
});

/** A program that says that it runs, leaves its process id, and goes on until its file is gone. */
const lasting = (file: string) =>
  `echo $$ > ${file}; echo started; while [ -e ${file} ]; do sleep 0.02; done; echo ended`;

const isRunning = (pid: number) => existsSync(`/proc/${pid}`);

test("every replica shows which one holds a device", async () => {
  for (const replica of [a, b]) {
    const { device } = await replica.operator.registry.getDevice({ device: "nas" });
    expect(device).toMatchObject({
      link: LinkState.ONLINE,
      linkMode: LinkMode.ATTACH,
      replicaId: b.registry.replicaId,
    });
  }
});

test("a call through one replica runs on a device that another one holds", async () => {
  const { call } = await a.operator.registry.callTool({
    device: "nas",
    tool: "exec",
    params: { argv: ["echo", "hi"] },
  });
  expect(call).toMatchObject({ status: { state: CallState.SUCCEEDED, output: { stdout: "hi\n" } } });
});

test("what a tool prints comes as it is printed, and a cancel through the same replica ends the process", async () => {
  const stream = openCallStream(a.operator.registry);
  stream.call({ device: "nas", tool: "exec", params: { argv: ["bash", "-c", lasting(mark)] }, callId });
  expect(await stream.next(printedIn)).toBe("started\n");
  const pid = Number(await readFile(mark, "utf8"));
  expect(isRunning(pid)).toBe(true);
  stream.cancel(callId);
  expect((await stream.ended(callId)).status.state).toBe(CallState.CANCELED);
  expect(isRunning(pid)).toBe(false);
  await stream.end();
});

test("large arguments and output arrive complete", async () => {
  // More than HTTP/2 carries in one window, in either direction.
  const argv = ["bash", "-c", "head -c 1500000 /dev/zero | tr '\\0' x"];
  const text = "y".repeat(1024 * 1024);
  const write = { device: "nas", tool: "fs.write", params: { path: mark, text } };
  const [printed, written] = await Promise.all([
    a.operator.registry.callTool({ device: "nas", tool: "exec", params: { argv } }),
    a.operator.registry.callTool(write),
  ]);
  expect(written.call?.status?.state).toBe(CallState.SUCCEEDED);
  expect((await readFile(mark, "utf8")).length).toBe(text.length);
  expect(printed.call).toMatchObject({ status: { state: CallState.SUCCEEDED } });
});

test("the same call id at two replicas is one call", async () => {
  const request = { device: "nas", tool: "exec", params: { argv: ["bash", "-c", `echo run >> ${mark}`] }, callId };
  const [one, other] = await Promise.all([
    a.operator.registry.callTool(request),
    b.operator.registry.callTool(request),
  ]);
  expect(one.call?.status?.state).toBe(CallState.SUCCEEDED);
  expect(other.call?.status?.receipt).toEqual(one.call?.status?.receipt);
  expect(await readFile(mark, "utf8")).toBe("run\n");
});

test("a replica that does not own a call reports what happens to it, and cancels it", async () => {
  const stream = openCallStream(a.operator.registry);
  stream.call({ device: "nas", tool: "exec", params: { argv: ["bash", "-c", lasting(mark)] }, callId });
  await stream.next(printedIn);
  const seen: (CallState | undefined)[] = [];
  const watching = (async () => {
    for await (const { event } of b.operator.registry.watchCall({ callId })) {
      if (event?.event.case === "call") seen.push(event.event.value.status?.state);
    }
  })();
  await eventually(() => expect(seen.at(-1)).toBe(CallState.DISPATCHED));
  const { call } = await b.operator.registry.cancelCall({ callId });
  expect(call?.status?.state).toBe(CallState.CANCELED);
  await watching;
  expect(seen.slice(-2)).toEqual([CallState.DISPATCHED, CallState.CANCELED]);
  expect((await stream.ended(callId)).status.state).toBe(CallState.CANCELED);
  await stream.end();
});

test("a call that one replica holds is approved, and reported by the other", async () => {
  const request = { device: "nas", tool: "exec", params: { argv: ["touch", mark] }, callId };
  await a.agent.registry.callTool({ ...request, noWait: true });
  const reported = b.agent.registry.callTool(request);
  await approveCall(b.operator, callId);
  expect((await reported).call?.status?.state).toBe(CallState.SUCCEEDED);
  expect(existsSync(mark)).toBe(true);
});

test("every replica shows a call as it stands each time, and the end on a stream has its output", async () => {
  const request = { device: "nas", tool: "exec", params: { argv: ["bash", "-c", "echo hi"] }, callId };
  await a.agent.registry.callTool({ ...request, noWait: true });
  const seen = async () => (await b.agent.registry.getCall({ callId })).call;
  await eventually(async () => expect(await seen()).toMatchObject({ status: { state: CallState.HELD } }));
  expect((await seen())?.status?.approval?.id).not.toBe("");
  expect((await b.agent.registry.callTool({ ...request, noWait: true })).call?.status?.approval?.id).not.toBe("");
  const stream = openCallStream(b.agent.registry);
  stream.call(request);
  await approveCall(b.operator, callId);
  expect(await stream.ended(callId)).toMatchObject({
    status: { state: CallState.SUCCEEDED, output: { stdout: "hi\n" } },
  });
  await stream.end();
});

test("a call goes on when its device moves to another replica", async () => {
  const c = await scene.replica();
  const urls = [c.url];
  const mover = await scene.device("mover", urls);
  await online(a, "mover", c);
  const file = join(mover.work, callId);
  const argv = ["bash", "-c", `echo run >> ${file}.runs; ${lasting(file)}`];
  const stream = openCallStream(a.operator.registry);
  stream.call({ device: "mover", tool: "exec", params: { argv }, callId });
  await stream.next(printedIn);
  urls[0] = b.url;
  await c.close();
  await online(a, "mover", b);
  await rm(file);
  const call = await stream.ended(callId);
  await stream.end();
  expect(call).toMatchObject({ status: { state: CallState.SUCCEEDED, output: { stdout: "started\nended\n" } } });
  expect(await readFile(`${file}.runs`, "utf8")).toBe("run\n");
  await mover.close();
});

test("a device whose state was copied is refused, and its replica learns", async () => {
  const cloned: string[] = [];
  const c = await scene.replica({ admission: { onCloned: async (id) => void cloned.push(id) } });
  const first = await scene.device("twin", [c.url]);
  await online(c, "twin", c);
  await first.close();
  const copy = join(scene.folder, "device-copy");
  await cp(first.stateDir, copy, { recursive: true });
  // The first one dials once more, and the copy then shows a number that is used.
  const again = await scene.device("twin", [c.url], first.stateDir);
  await online(a, "twin", c);
  const second = await scene.device("twin", [b.url, c.url], copy);
  await eventually(() => expect(cloned).toContain(first.id));
  await Promise.all([again.close(), second.close()]);
});

test("a device that may not connect any more loses its session, whichever replica learns", async () => {
  const locked = new Set<string>();
  const admission = {
    mayAttach: async (id: string) => {
      if (locked.has(id)) throw fault(ErrorReason.DEVICE_LOCKED, { device: id, why: "test" });
    },
  };
  const c = await scene.replica({ admission });
  const device = await scene.device("guest", [c.url]);
  await online(a, "guest", c);
  locked.add(device.id);
  await a.registry.fleet.recheck(device.id);
  await eventually(async () => {
    const { device: seen } = await a.operator.registry.getDevice({ device: "guest" });
    expect(seen?.link).toBe(LinkState.OFFLINE);
  });
  const { call } = await a.operator.registry.callTool({ device: "guest", tool: "exec", params: { argv: ["uname"] } });
  expect(call).toMatchObject({ status: { state: CallState.FAILED, error: { reason: ErrorReason.DEVICE_OFFLINE } } });
  await device.close();
});

test("a call goes on when the connection between the replicas was cut under it", async () => {
  const stream = openCallStream(a.operator.registry);
  const argv = ["bash", "-c", `echo run >> ${mark}.runs; ${lasting(mark)}`];
  stream.call({ device: "nas", tool: "exec", params: { argv }, callId });
  await stream.next(printedIn);
  b.peerProxy.cut();
  await rm(mark);
  const call = await stream.ended(callId);
  await stream.end();
  expect(call).toMatchObject({ status: { state: CallState.SUCCEEDED, output: { stdout: "started\nended\n" } } });
  expect(await readFile(`${mark}.runs`, "utf8")).toBe("run\n");
});

test("a device at a replica that is not reached is offline, and the caller learns why", async () => {
  const alone = await scene.replica({ peerTransport: undefined });
  await online(alone, "nas");
  const { call } = await alone.operator.registry.callTool({ device: "nas", tool: "exec", params: { argv: ["uname"] } });
  expect(call).toMatchObject({ status: { state: CallState.FAILED, error: { reason: ErrorReason.DEVICE_OFFLINE } } });
  expect(call?.status?.errorMessage).toContain("REEVE_REGISTRY_ADVERTISE_URL");
  await alone.close();
});

test("a call of a replica that is not reached is followed and canceled all the same", async () => {
  const alone = await scene.replica({ peerTransport: undefined });
  const argv = ["bash", "-c", lasting(mark)];
  const request = { device: "nas", tool: "exec", params: { argv }, callId };
  const stream = openCallStream(a.operator.registry);
  stream.call(request);
  await stream.next(printedIn);
  const reported = alone.operator.registry.callTool(request);
  await alone.operator.registry.cancelCall({ callId });
  expect((await reported).call?.status?.state).toBe(CallState.CANCELED);
  expect((await stream.ended(callId)).status.state).toBe(CallState.CANCELED);
  await stream.end();
  await alone.close();
});

test("a request for the same as a held call is that call, whichever replica it reaches", async () => {
  const request = { device: "nas", tool: "exec", params: { argv: ["touch", mark] }, noWait: true, joinHeld: true };
  const first = await a.agent.registry.callTool(request);
  expect([first.call?.status?.state, first.joined]).toEqual([CallState.HELD, false]);
  const [again, more] = [await b.agent.registry.callTool(request), await a.agent.registry.callTool(request)];
  expect([again, more].map(({ call, joined }) => [call?.id, joined])).toEqual([
    [first.call?.id, true],
    [first.call?.id, true],
  ]);
  await approveCall(b.operator, first.call?.id ?? "");
  await eventually(() => expect(existsSync(mark)).toBe(true));
});
