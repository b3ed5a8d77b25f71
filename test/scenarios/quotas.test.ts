import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, afterEach, beforeAll, expect, test } from "vitest";
import type { RegistryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import { eventually } from "../../testkit/eventually.ts";
import { agentOf, type InMemoryPlane, OPERATOR, startInMemoryPlane } from "../../testkit/in-memory-plane.ts";
import { lyingDevice } from "../../testkit/lying-device.ts";

const device = lyingDevice("nas", [], ["device.ping", "shell.eval"]);
let plane: InMemoryPlane;
let agent: RegistryClient;
let operator: RegistryClient;
beforeAll(async () => {
  const quotas = { policyQuotas: { heldCalls: 3, heldBytes: 2000 }, registryQuotas: { calls: 2 } };
  plane = await startInMemoryPlane({ nas: device }, quotas);
  agent = plane.as(agentOf("agent"));
  operator = plane.as(OPERATOR);
});
afterAll(() => plane.close());
afterEach(() => {
  device.lie = {};
});

const ping = (client: RegistryClient) => client.callTool({ tool: "device.ping", params: { text: "ping" } });

test("an agent has so many calls open and no more, and no other caller is held up", async () => {
  const gate = Promise.withResolvers<void>();
  device.lie = { until: gate.promise };
  const open = [ping(agent), ping(agent)];
  await eventually(async () => {
    const { calls } = await agent.listCalls({});
    expect(calls.filter(({ status }) => status?.state === CallState.DISPATCHED)).toHaveLength(2);
  });
  const refused = faultDetail(await ping(agent).catch((error: unknown) => error));
  expect(refused).toMatchObject({ reason: ErrorReason.QUOTA_EXCEEDED, metadata: { quota: "calls", limit: "2" } });
  const operators = ping(operator);
  gate.resolve();
  const ends = await Promise.all([...open, operators]);
  expect(ends.map(({ call }) => call?.status?.state)).toEqual([1, 2, 3].map(() => CallState.SUCCEEDED));
  expect((await ping(agent)).call?.status?.state).toBe(CallState.SUCCEEDED);
});

test("an agent has so many calls waiting for a person and no more; room is made by a decision or a cancel", async () => {
  const ask = (command: string) =>
    agent.callTool({ tool: "shell.eval", params: { command }, approvalWait: durationFromMs(1) });
  const held = [await ask("a"), await ask("b"), await ask("c")];
  expect(held.map(({ call }) => call?.status?.state)).toEqual([1, 2, 3].map(() => CallState.HELD));
  const { call } = await ask("d");
  expect(call).toMatchObject({
    status: {
      state: CallState.DENIED,
      error: { reason: ErrorReason.QUOTA_EXCEEDED, metadata: { quota: "held_calls", limit: "3" } },
      errorMessage: expect.stringMatching(/wait for decisions, or cancel some calls/) as string,
    },
  });
  // What is not held is not kept from running, and an operator has a quota of their own.
  expect((await ping(agent)).call?.status?.state).toBe(CallState.SUCCEEDED);
  const operators = await operator.callTool({
    tool: "shell.eval",
    params: { command: "e" },
    approvalWait: durationFromMs(1),
  });
  expect(operators.call?.status?.state).toBe(CallState.HELD);

  await agent.cancelCall({ callId: held[0]?.call?.id ?? "" });
  await eventually(async () => expect((await ask("f")).call?.status?.state).toBe(CallState.HELD));
  await agent.cancelCall({ callId: held[1]?.call?.id ?? "" });
  await eventually(async () => {
    const large = await ask("x".repeat(2000));
    expect(large.call?.status?.error?.metadata).toEqual({ quota: "held_bytes", limit: "2000" });
  });
});
