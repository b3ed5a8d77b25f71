import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import type { RegistryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorDetailSchema, ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExecutionOutcome } from "../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { generateSigningKey } from "../../lib/sign/keys.ts";
import { type InMemoryPlane, OPERATOR, startInMemoryPlane } from "../../testkit/in-memory-plane.ts";
import { type Lie, lyingDevice } from "../../testkit/lying-device.ts";

const device = lyingDevice("nas");
let plane: InMemoryPlane;
let client: RegistryClient;
beforeAll(async () => {
  plane = await startInMemoryPlane({ nas: device });
  client = plane.as(OPERATOR);
});
afterAll(() => plane.close());
beforeEach(() => {
  device.lie = {};
});

async function ping() {
  const { call } = await client.callTool({ tool: "device.ping", params: { text: "ping" } });
  return { state: call?.status?.state, reason: call?.status?.error?.reason, output: call?.status?.output };
}

test("believes a device whose receipt holds", async () => {
  expect(await ping()).toMatchObject({ state: CallState.SUCCEEDED, output: { text: "pong" } });
});

const other = "f".repeat(64);

test.each<[string, Lie]>([
  ["for another call", { receipt: { callId: "call-other" } }],
  ["of another device", { receipt: { deviceId: "dev-0000000000000000" } }],
  ["for another tool", { receipt: { tool: "exec" } }],
  ["for other arguments", { receipt: { argsDigest: other } }],
  ["for another output", { receipt: { outputDigest: other } }],
  ["of another end", { receipt: { outcome: ExecutionOutcome.FAILED } }],
  ["signed by another key", { signer: generateSigningKey() }],
  ["that is missing", { finished: { receipt: undefined as never } }],
  ["for an output that was changed in transit", { finished: { output: Buffer.from('{"text":"gnop"}') } }],
])("does not believe a receipt %s: the end is not known", async (_, lie) => {
  device.lie = lie;
  expect(await ping()).toEqual({ state: CallState.UNKNOWN, reason: ErrorReason.RECEIPT_INVALID, output: undefined });
});

test("does not let a device say what only others know, nor as much of it as it likes", async () => {
  const receipt = { outcome: ExecutionOutcome.FAILED, outputDigest: "", outputBytes: 0 };
  const metadata = Object.fromEntries(Array.from({ length: 1000 }, (_, n) => [`key_${n}`, "x".repeat(1000)]));
  const ends = async (reason: ErrorReason) => {
    const error = create(ErrorDetailSchema, { reason, metadata });
    device.lie = { receipt, finished: { outcome: ExecutionOutcome.FAILED, output: Buffer.alloc(0), error } };
    const { call } = await client.callTool({ tool: "device.ping", params: { text: "ping" } });
    return {
      state: call?.status?.state,
      reason: call?.status?.error?.reason,
      keys: Object.keys(call?.status?.error?.metadata ?? {}).length,
    };
  };
  expect(await ends(ErrorReason.POLICY_UNAVAILABLE)).toEqual({
    state: CallState.FAILED,
    reason: ErrorReason.TOOL_FAILED,
    keys: 0,
  });
  const { reason, keys } = await ends(ErrorReason.OS_REFUSED);
  expect(reason).toBe(ErrorReason.OS_REFUSED);
  expect(keys).toBeLessThan(16);
});

test("sends the same call again, with the same grant, to a device that hung up", async () => {
  device.lie = { hangUp: true };
  const before = device.starts.length;
  const answer = ping();
  await expect.poll(() => device.starts.length).toBeGreaterThan(before);
  device.lie = {};
  expect(await answer).toMatchObject({ state: CallState.SUCCEEDED });
  const [first, ...rest] = device.starts.slice(before);
  expect(rest.length).toBeGreaterThan(0);
  for (const again of rest) expect(again).toEqual(first);
});
