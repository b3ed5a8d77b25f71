import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExecutionOutcome } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import type { PingRequest } from "../../../gen/ts/reeve/tools/v1/device_pb.ts";
import { reasonOf } from "../../../lib/fault/fault.ts";
import { bytesOf, createGate, PING_CALL, ping, reconcile, run } from "../testing/test-calls.ts";
import { openTestDevice } from "../testing/test-executions.ts";
import { PING, testTool } from "../testing/test-tools.ts";
import type { ToolContext } from "../tools/tool.ts";

describe("stopping", () => {
  /** Runs until it is asked to stop, and heeds that. */
  const patient = testTool(
    PING,
    (_: PingRequest, { signal }: ToolContext) =>
      new Promise((_resolve, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
  );

  test("a running call cancels it", async () => {
    await using device = await openTestDevice({ tools: [patient] });
    const finished = run(device, await device.grants.start(PING_CALL));
    device.executions.cancel("call-1");
    expect(await finished).toMatchObject({
      outcome: ExecutionOutcome.CANCELED,
      error: { reason: ErrorReason.CANCELED, metadata: { by: "caller" } },
    });
  });

  test("a call that waits for its place cancels it, and nothing runs", async () => {
    const gate = createGate();
    await using device = await openTestDevice({ tools: [gate.tool], maxRunning: 1 });
    const first = run(device, await device.grants.start(PING_CALL));
    const second = run(device, await device.grants.start({ ...PING_CALL, callId: "call-2" }));
    device.executions.cancel("call-2");
    const canceled = await second;
    expect(canceled).toMatchObject({ outcome: ExecutionOutcome.CANCELED });
    expect(device.receiptOf(canceled).startTime).toBeUndefined();
    gate.open();
    await first;
    expect(gate.runs).toHaveLength(1);
    expect(bytesOf(await run(device, await device.grants.start({ ...PING_CALL, callId: "call-2" })))).toEqual(
      bytesOf(canceled),
    );
  });

  test("nothing that is unknown or has ended does nothing", async () => {
    await using device = await openTestDevice({ tools: [ping] });
    device.executions.cancel("call-1");
    const finished = await run(device, await device.grants.start(PING_CALL));
    device.executions.cancel("call-1");
    expect(finished.outcome).toBe(ExecutionOutcome.SUCCEEDED);
  });

  test("a call that no person approved ends at the rules' max_run, and says so", async () => {
    await using device = await openTestDevice({ tools: [patient] });
    const finished = await run(
      device,
      await device.grants.start(PING_CALL, { timeout: durationFromMs(1), obligations: { maxRun: durationFromMs(1) } }),
    );
    expect(finished).toMatchObject({
      outcome: ExecutionOutcome.TIMED_OUT,
      message: expect.stringMatching(/without a person's approval policy lets it run for 1 ms \(max_run\)/) as string,
      error: { reason: ErrorReason.TIMED_OUT, metadata: { timeout_ms: "1", max_run_ms: "1" } },
    });
    const receipt = device.receiptOf(finished);
    expect(receipt).toMatchObject({ outcome: ExecutionOutcome.TIMED_OUT, timeout: durationFromMs(1) });
  });

  test("the grant's time ends a call", async () => {
    await using device = await openTestDevice({ tools: [patient] });
    expect(await run(device, await device.grants.start(PING_CALL, { timeout: durationFromMs(1) }))).toMatchObject({
      outcome: ExecutionOutcome.TIMED_OUT,
      error: { reason: ErrorReason.TIMED_OUT, metadata: { timeout_ms: "1" } },
    });
  });

  test("waiting for a place counts against the call's time", async () => {
    await using device = await openTestDevice({ tools: [patient], maxRunning: 1 });
    const first = run(device, await device.grants.start(PING_CALL));
    const second = await run(
      device,
      await device.grants.start({ ...PING_CALL, callId: "call-2" }, { timeout: durationFromMs(1) }),
    );
    expect(second).toMatchObject({ outcome: ExecutionOutcome.NOT_STARTED, error: { reason: ErrorReason.NOT_STARTED } });
    device.executions.cancel("call-1");
    await first;
  });

  test("the agent stops its calls and takes on no more", async () => {
    await using device = await openTestDevice({ tools: [patient] });
    const start = await device.grants.start(PING_CALL);
    const finished = run(device, start);
    await device.executions.close();
    expect(await finished).toMatchObject({
      outcome: ExecutionOutcome.CANCELED,
      error: { metadata: { by: "shutdown" } },
    });
    expect(await run(device, start).catch(reasonOf)).toBe(ErrorReason.NOT_READY);
    expect(await reconcile(device, "call-1").catch(reasonOf)).toBe(ErrorReason.NOT_READY);
  });
});
