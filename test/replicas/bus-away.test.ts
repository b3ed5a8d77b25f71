import { expect, test } from "vitest";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { eventually } from "../../testkit/eventually.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { startNatsServer } from "../../testkit/nats-server.ts";
import { online, startReplicaScene } from "./fixture.ts";

test("replicas that start without NATS serve their own devices, and each other's when it comes", async () => {
  await using parts = new AsyncDisposableStack();
  const [port = 0] = await freePorts(1);
  const scene = parts.adopt(await startReplicaScene(), (one) => one.close());
  const nats = { servers: [`127.0.0.1:${port}`] };
  const [a, b] = await Promise.all([scene.replica({ nats }), scene.replica({ nats })]);
  await scene.device("nas", [b.url]);
  await Promise.all([online(a, "nas", b), online(b, "nas", b)]);
  const ping = { device: "nas", tool: "device.ping", params: {} };
  expect((await b.operator.registry.callTool(ping)).call?.state).toBe(CallState.SUCCEEDED);
  const { call } = await a.operator.registry.callTool(ping);
  expect(call?.error).toMatchObject({ reason: ErrorReason.DEVICE_OFFLINE });
  expect(call?.errorMessage).toContain("NATS, over which replicas reach each other, is not connected");
  parts.adopt(await startNatsServer({ args: ["-p", String(port)] }), (one) => one.close());
  const reached = async () => expect((await a.operator.registry.callTool(ping)).call?.state).toBe(CallState.SUCCEEDED);
  await eventually(reached);
}, 90_000);
