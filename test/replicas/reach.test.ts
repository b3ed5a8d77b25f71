import { expect, test } from "vitest";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { eventually } from "../../testkit/eventually.ts";
import { online, startReplicaScene } from "../../testkit/replicas.ts";

test("a replica serves its own devices while another does not reach it, and that one's callers again afterwards", async () => {
  await using parts = new AsyncDisposableStack();
  const scene = parts.adopt(await startReplicaScene(), (one) => one.close());
  const [a, b] = await Promise.all([scene.replica(), scene.replica()]);
  await scene.device("nas", [b.url]);
  await Promise.all([online(a, "nas", b), online(b, "nas", b)]);
  b.peerProxy.blackhole();
  const ping = { device: "nas", tool: "device.ping", params: {} };
  expect((await b.operator.registry.callTool(ping)).call?.status?.state).toBe(CallState.SUCCEEDED);
  const { call } = await a.operator.registry.callTool(ping);
  expect(call?.status?.error).toMatchObject({ reason: ErrorReason.DEVICE_OFFLINE });
  expect(call?.status?.errorMessage).toContain("the replica that holds its session is not reached");
  b.peerProxy.cut();
  const reached = async () =>
    expect((await a.operator.registry.callTool(ping)).call?.status?.state).toBe(CallState.SUCCEEDED);
  await eventually(reached);
}, 90_000);
