import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { LinkState } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { fanOutCallId } from "../../lib/ids/fan-out-call-id.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { eventually } from "../../testkit/eventually.ts";
import { startAndWatch } from "../../testkit/fan-outs.ts";
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

beforeAll(async () => {
  scene = await startReplicaScene();
  [a, b] = await Promise.all([scene.replica(), scene.replica()]);
  nas = await scene.device("nas", [b.url]);
  await Promise.all([online(a, "nas", b), online(b, "nas", b)]);
});
afterAll(() => scene?.close());

async function isOffline(replica: Replica): Promise<void> {
  await eventually(async () => {
    const { device } = await replica.operator.registry.getDevice({ device: "nas" });
    expect(device?.link).toBe(LinkState.OFFLINE);
  });
}

const stateOf = async (replica: Replica, callId: string) =>
  (await replica.operator.registry.getCall({ callId })).call?.status?.state;

test("a queued call is delivered through another replica than the one that keeps it, also when that is gone", async () => {
  await nas.close();
  await Promise.all([isOffline(a), isOffline(b)]);
  const asked = (name: string) => ({
    device: "nas",
    tool: "exec",
    params: { argv: ["bash", "-c", `echo ran >> ${join(nas.work, name)}`] },
    callId: name,
    queueTimeout: durationFromMs(600_000),
  });
  const c = await scene.replica();
  await isOffline(c);
  for (const [replica, name] of [
    [a, "kept-by-a"],
    [c, "kept-by-c"],
  ] as const) {
    expect((await replica.operator.registry.callTool(asked(name))).call?.status?.state).toBe(CallState.QUEUED);
  }
  await c.close();
  expect(await stateOf(b, "kept-by-c")).toBe(CallState.QUEUED);
  nas = await scene.device("nas", [b.url]);
  for (const name of ["kept-by-a", "kept-by-c"]) {
    await eventually(async () => expect(await stateOf(b, name)).toBe(CallState.SUCCEEDED));
    expect(await readFile(join(nas.work, name), "utf8")).toBe("ran\n");
  }
});

test("a fan-out that waits for its approval goes on through another replica when its own is gone", async () => {
  await online(a, "nas", b);
  const c = await scene.replica();
  await online(c, "nas", b);
  const fanOutId = "moved";
  const request = { devices: ["nas"], tool: "exec", params: { argv: ["touch", join(nas.work, fanOutId)] }, fanOutId };
  for await (const { event } of startAndWatch(c.agent.fanOut, request)) if (event.case === "held") break;
  await c.close();
  const again = Array.fromAsync(startAndWatch(a.agent.fanOut, request));
  const { spec } = await approveCall(b.operator, fanOutId);
  expect((await again).at(-1)?.event).toMatchObject({ case: "summary", value: { succeeded: true } });
  expect(await stateOf(b, fanOutCallId(spec?.callId ?? "", nas.id))).toBe(CallState.SUCCEEDED);
});
