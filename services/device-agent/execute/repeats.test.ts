import { describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExecutionOutcome } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { bytesOf, createGate, PING_CALL, ping, reconcile, run } from "../testing/test-calls.ts";
import { openTestDevice } from "../testing/test-executions.ts";

describe("a call id that comes again", () => {
  test("gets the stored end, byte for byte, and nothing runs", async () => {
    const gate = createGate();
    gate.open();
    await using device = await openTestDevice({ tools: [gate.tool] });
    const start = await device.grants.start(PING_CALL);
    const first = bytesOf(await run(device, start));
    expect(bytesOf(await run(device, start))).toEqual(first);
    expect(bytesOf(await reconcile(device, "call-1"))).toEqual(first);
    expect(gate.runs).toHaveLength(1);
  });

  test("gets the stored end with a new grant, and with one that has expired", async () => {
    let nowMs = Date.now();
    await using device = await openTestDevice({ tools: [ping], now: () => nowMs });
    const start = await device.grants.start(PING_CALL);
    const first = bytesOf(await run(device, start));
    expect(bytesOf(await run(device, await device.grants.start(PING_CALL)))).toEqual(first);
    nowMs += 3_600_000;
    expect(bytesOf(await run(device, start))).toEqual(first);
  });

  test("while it runs, gets the same end", async () => {
    const gate = createGate();
    await using device = await openTestDevice({ tools: [gate.tool] });
    const start = await device.grants.start(PING_CALL);
    const first = run(device, start);
    await gate.started;
    const others = [run(device, start), reconcile(device, "call-1")];
    gate.open();
    expect(await Promise.all(others)).toEqual([await first, await first]);
    expect(gate.runs).toHaveLength(1);
  });

  test("for other arguments is refused, before and after the end", async () => {
    const gate = createGate();
    await using device = await openTestDevice({ tools: [gate.tool] });
    const first = run(device, await device.grants.start(PING_CALL));
    const other = await device.grants.start({ ...PING_CALL, args: { text: "other" } });
    const refused = { outcome: ExecutionOutcome.REFUSED, error: { reason: ErrorReason.CALL_ID_REUSED } };
    expect(await run(device, other)).toMatchObject(refused);
    gate.open();
    await first;
    expect(await run(device, other)).toMatchObject(refused);
    expect(gate.runs).toEqual(["hello"]);
  });
});

describe("reconciling", () => {
  test("a call that was never started keeps it from ever starting", async () => {
    const gate = createGate();
    await using device = await openTestDevice({ tools: [gate.tool] });
    const settled = await reconcile(device, "call-1");
    expect(settled).toMatchObject({
      outcome: ExecutionOutcome.NOT_STARTED,
      error: { reason: ErrorReason.NOT_STARTED },
    });
    expect(device.receiptOf(settled).outcome).toBe(ExecutionOutcome.NOT_STARTED);
    expect(device.receiptOf(settled).startTime).toBeUndefined();
    expect(bytesOf(await run(device, await device.grants.start(PING_CALL)))).toEqual(bytesOf(settled));
    expect(gate.runs).toEqual([]);
  });

  test("and starting at the same moment agree on one end", async () => {
    const gate = createGate();
    gate.open();
    await using device = await openTestDevice({ tools: [gate.tool] });
    const start = await device.grants.start(PING_CALL);
    const settledFirst = [reconcile(device, "call-1"), run(device, start)];
    const [one, two] = await Promise.all(settledFirst);
    expect(one).toEqual(two);
    const startedFirst = [
      run(device, await device.grants.start({ ...PING_CALL, callId: "call-2" })),
      reconcile(device, "call-2"),
    ];
    const [three, four] = await Promise.all(startedFirst);
    expect(three).toEqual(four);
    expect(gate.runs).toHaveLength(1);
  });
});
