import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { ExecutionOutcome } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import type { PingRequest } from "../../../gen/ts/reeve/tools/v1/device_pb.ts";
import { fault, reasonOf } from "../../../lib/fault/fault.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { bytesOf, createGate, PING_CALL, ping, pong, reconcile, run } from "../testing/test-calls.ts";
import { createTestWatcher, openTestDevice } from "../testing/test-executions.ts";
import { PING, testTool } from "../testing/test-tools.ts";
import type { ToolContext } from "../tools/tool.ts";

describe("a granted call", () => {
  test("runs, and its receipt says what ran and what came out", async () => {
    await using device = await openTestDevice({ tools: [ping], now: () => 1_800_000_000_123 });
    const start = await device.grants.start(PING_CALL, { grantId: "12".repeat(16) });
    const finished = await run(device, start);
    const output = '{"text":"hello"}';
    expect(finished).toMatchObject({ callId: "call-1", outcome: ExecutionOutcome.SUCCEEDED, message: "" });
    expect(finished.error).toBeUndefined();
    expect(Buffer.from(finished.output).toString()).toBe(output);
    expect(device.receiptOf(finished)).toMatchObject({
      version: 1,
      callId: "call-1",
      grantId: "12".repeat(16),
      tool: "device.ping",
      argsDigest: sha256Hex('{"text":"hello"}'),
      outcome: ExecutionOutcome.SUCCEEDED,
      reason: ErrorReason.UNSPECIFIED,
      outputDigest: sha256Hex(output),
      outputBytes: output.length,
      sandbox: SandboxLevel.UNSPECIFIED,
      startTime: timestampFromMs(1_800_000_000_123),
    });
  });

  test("is on disk before it runs and after it has ended", async () => {
    const gate = createGate();
    await using device = await openTestDevice({ tools: [gate.tool] });
    const finished = run(device, await device.grants.start(PING_CALL));
    await gate.started;
    expect(await device.ledger.find("call-1")).toMatchObject({ state: "started", finished: undefined });
    gate.open();
    const bytes = bytesOf(await finished);
    expect(Buffer.from((await device.ledger.find("call-1"))?.finished ?? "")).toEqual(bytes);
  });

  test("does not run where the ledger cannot be written", async () => {
    const gate = createGate();
    const broken = () => Promise.reject(new Error("disk full"));
    await using device = await openTestDevice({ tools: [gate.tool], ledger: (real) => ({ ...real, begin: broken }) });
    const finished = await run(device, await device.grants.start(PING_CALL));
    expect(finished).toMatchObject({ outcome: ExecutionOutcome.REFUSED, error: { reason: ErrorReason.INTERNAL } });
    expect(gate.runs).toEqual([]);
    expect(device.unexpected).toHaveLength(1);
  });

  test("gets no answer where its end cannot be written, and is interrupted for a caller that asks again", async () => {
    let broken = true;
    await using device = await openTestDevice({
      tools: [ping],
      ledger: (real) => ({
        ...real,
        finish: (end) => (broken ? Promise.reject(new Error("disk full")) : real.finish(end)),
      }),
    });
    const start = await device.grants.start(PING_CALL);
    expect(await run(device, start).catch(reasonOf)).toBe(ErrorReason.INTERNAL);
    broken = false;
    expect((await run(device, start)).outcome).toBe(ExecutionOutcome.INTERRUPTED);
    expect((await reconcile(device, "call-1")).outcome).toBe(ExecutionOutcome.INTERRUPTED);
  });

  test.each<[string, unknown, ExecutionOutcome, ErrorReason]>([
    [
      "a fault",
      fault(ErrorReason.TARGET_NOT_FOUND, { field: "path" }),
      ExecutionOutcome.FAILED,
      ErrorReason.TARGET_NOT_FOUND,
    ],
    ["a timeout", fault(ErrorReason.TIMED_OUT, { timeout_ms: "5" }), ExecutionOutcome.TIMED_OUT, ErrorReason.TIMED_OUT],
    ["a cancel", fault(ErrorReason.CANCELED, { by: "caller" }), ExecutionOutcome.CANCELED, ErrorReason.CANCELED],
    ["something unexpected", new Error("secret detail"), ExecutionOutcome.FAILED, ErrorReason.INTERNAL],
  ])("whose tool throws %s ends so", async (_, thrown, outcome, reason) => {
    await using device = await openTestDevice({ tools: [testTool(PING, () => Promise.reject(thrown))] });
    const finished = await run(device, await device.grants.start(PING_CALL));
    expect(finished).toMatchObject({ outcome, error: { reason }, output: new Uint8Array() });
    expect(finished.message).not.toContain("secret detail");
    expect(device.receiptOf(finished)).toMatchObject({ outcome, reason, outputDigest: "", outputBytes: 0 });
    expect(device.unexpected).toEqual(reason === ErrorReason.INTERNAL ? [thrown] : []);
  });

  test("whose output is too large fails, although it ran", async () => {
    const large = testTool(PING, async () => pong("x".repeat(2 * 1024 * 1024)));
    await using device = await openTestDevice({ tools: [large] });
    expect(await run(device, await device.grants.start(PING_CALL))).toMatchObject({
      outcome: ExecutionOutcome.FAILED,
      error: { reason: ErrorReason.TOOL_FAILED, metadata: { limit: "2097152" } },
    });
  });

  test("sends what its tool prints, all of it before its end", async () => {
    const talking = testTool(PING, async (_: PingRequest, context: ToolContext) => {
      for (const text of ["one", "two", "three"]) void context.emit("stdout", Buffer.from(text));
      return pong("");
    });
    await using device = await openTestDevice({ tools: [talking] });
    const received: string[] = [];
    const watcher = createTestWatcher();
    device.executions.start(await device.grants.start(PING_CALL), {
      ...watcher,
      output: ({ sequence, data }) => received.push(`${sequence}:${Buffer.from(data).toString()}`),
      finished(finished) {
        received.push("end");
        watcher.finished(finished);
      },
    });
    await watcher.end;
    expect(received).toEqual(["0:one", "1:two", "2:three", "end"]);
  });
});

test("never more calls run than there are places, and they run in order", async () => {
  let running = 0;
  let most = 0;
  const order: string[] = [];
  const busy = testTool(PING, async ({ text }: PingRequest) => {
    order.push(text);
    most = Math.max(most, ++running);
    await new Promise(setImmediate);
    running--;
    return pong(text);
  });
  await using device = await openTestDevice({ tools: [busy], maxRunning: 3 });
  const names = Array.from({ length: 20 }, (_, index) => `call-${index}`);
  const starts = await Promise.all(
    names.map((callId) => device.grants.start({ tool: "device.ping", args: { text: callId }, callId })),
  );
  const ends = await Promise.all(starts.map((start) => run(device, start)));
  expect(ends.every(({ outcome }) => outcome === ExecutionOutcome.SUCCEEDED)).toBe(true);
  expect(most).toBe(3);
  expect(order).toEqual(names);
});

test("an operator's call runs while agents' calls hold every place that they may", async () => {
  const gate = createGate();
  await using device = await openTestDevice({ tools: [gate.tool], maxRunning: 2, operatorPlaces: 1 });
  const start = (callId: string, isOperator: boolean) => device.grants.start({ ...PING_CALL, callId }, { isOperator });
  const agents = await Promise.all(["a", "b", "c", "d"].map((callId) => start(callId, false)));
  const waiting = agents.map((one) => run(device, one));
  await eventually(() => expect(gate.runs).toHaveLength(2));
  const operators = run(device, await start("o", true));
  await eventually(() => expect(gate.runs).toHaveLength(3));
  gate.open();
  expect((await operators).outcome).toBe(ExecutionOutcome.SUCCEEDED);
  const ends = await Promise.all(waiting);
  expect(ends.map(({ outcome }) => outcome)).toEqual(agents.map(() => ExecutionOutcome.SUCCEEDED));
});

test("reports whether a call is running and how it ended", async () => {
  const gate = createGate();
  await using device = await openTestDevice({ tools: [gate.tool] });
  expect(await device.executions.find("call-1")).toBeUndefined();
  const finished = run(device, await device.grants.start(PING_CALL));
  await gate.started;
  expect(await device.executions.find("call-1")).toEqual({ running: true });
  gate.open();
  expect(await device.executions.find("call-1").then(() => finished)).toBeDefined();
  expect(await device.executions.find("call-1")).toMatchObject({ running: false, finished: { callId: "call-1" } });
});
