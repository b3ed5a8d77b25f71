import { afterAll, beforeAll, expect, test } from "vitest";
import type { RegistryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { openCallStream } from "../../testkit/call-stream.ts";
import { agentOf, type InMemoryPlane, OPERATOR, startInMemoryPlane } from "../../testkit/in-memory-plane.ts";
import { lyingDevice } from "../../testkit/lying-device.ts";

const device = lyingDevice("nas", [], ["device.ping"]);
let plane: InMemoryPlane;
let ada: RegistryClient;
let bob: RegistryClient;
let operator: RegistryClient;
beforeAll(async () => {
  plane = await startInMemoryPlane({ nas: device });
  ada = plane.as(agentOf("ada"));
  bob = plane.as(agentOf("bob"));
  operator = plane.as(OPERATOR);
});
afterAll(() => plane.close());

async function ping(client: RegistryClient, callId: string, text = "ping") {
  const { call } = await client.callTool({ tool: "device.ping", params: { text }, callId });
  if (call === undefined) throw new Error("no call came back");
  return call;
}

test("two agents that choose the same id have a call each, and neither learns of the other's", async () => {
  const ids = await Promise.all([ping(ada, "deploy", "ada's"), ping(bob, "deploy", "bob's")]);
  expect(ids.map(({ status }) => status?.state)).toEqual([CallState.SUCCEEDED, CallState.SUCCEEDED]);
  expect(new Set(ids.map(({ id }) => id)).size).toBe(2);
  for (const [client, own] of [
    [ada, ids[0]],
    [bob, ids[1]],
  ] as const) {
    expect((await client.getCall({ callId: "deploy" })).call?.id).toBe(own?.id);
    expect((await client.listCalls({})).calls.map(({ id }) => id)).toEqual([own?.id]);
  }
});

test("trying again under a chosen id returns the same call, and so does the id in the answer", async () => {
  const first = await ping(ada, "again");
  const count = device.starts.length;
  expect((await ping(ada, "again")).id).toBe(first.id);
  expect((await ping(ada, first.id)).id).toBe(first.id);
  expect(await ping(ada, "again", "other").catch(reasonOf)).toBe(ErrorReason.CALL_ID_REUSED);
  expect(device.starts.length).toBe(count);
});

test("an agent that names the call of another one by its whole id gets a call of its own", async () => {
  const { id } = await ping(ada, "");
  const own = await ping(bob, id);
  expect(own).toMatchObject({ spec: { principalId: "bob" }, status: { state: CallState.SUCCEEDED } });
  expect(own.id).not.toBe(id);
  expect(await bob.cancelCall({ callId: id })).toMatchObject({ call: { id: own.id } });
  expect((await operator.getCall({ callId: id })).call?.spec?.principalId).toBe("ada");
});

test("an agent cannot occupy an id of an operator", async () => {
  await ping(bob, "maintenance");
  expect(await ping(operator, "maintenance")).toMatchObject({
    id: "maintenance",
    status: { state: CallState.SUCCEEDED },
  });
});

test("a stream names its calls by the ids that its caller chose", async () => {
  const stream = openCallStream(bob);
  stream.call({ tool: "device.ping", params: { text: "ping" }, callId: "streamed" });
  const call = await stream.ended("streamed");
  await stream.end();
  expect(new Set(stream.seen.map(({ callId }) => callId))).toEqual(new Set(["streamed"]));
  expect((await bob.getCall({ callId: "streamed" })).call?.id).toBe(call.id);
});
