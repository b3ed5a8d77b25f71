import { describe, expect, it } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type TestCallFields, testCall } from "../../../testkit/test-call.ts";
import type { GovernedCall } from "../calls/governed-call.ts";
import { stopAfterWave, summaryOf, verdictOf } from "./progress.ts";

const call = (state: CallState, output?: TestCallFields["output"]): GovernedCall =>
  testCall({ state, ...(output && { output }) });
const done = call(CallState.SUCCEEDED, { exitCode: 0, stdout: "ok" });
const broken = call(CallState.SUCCEEDED, { exitCode: 3 });
const waves = [["a"], ["b", "c"], ["d"]].map((wave) => wave.map((name) => ({ id: `dev-${name}`, name })));

describe("a call of a fan-out", () => {
  it.each([
    [CallState.SUCCEEDED, undefined, "succeeded"],
    [CallState.SUCCEEDED, { exitCode: 0 }, "succeeded"],
    [CallState.SUCCEEDED, { exitCode: 1 }, "failed"],
    [CallState.SUCCEEDED, { exitCode: null }, "failed"],
    [CallState.QUEUED, undefined, "queued"],
    [CallState.HELD, undefined, "failed"],
    [CallState.DISPATCHED, undefined, "failed"],
    [CallState.UNKNOWN, undefined, "failed"],
    [CallState.DENIED, undefined, "failed"],
    [99 as CallState, undefined, "failed"],
  ] as const)("in state %i with %j has %s", (state, output, verdict) => {
    expect(verdictOf(call(state, output))).toBe(verdict);
  });
});

describe("a fan-out", () => {
  const rules = { fanOutId: "f", canary: false, stopAfterFailures: 2 };
  const results = (...calls: [string, GovernedCall][]) => new Map(calls);

  it("goes on while fewer have failed than may", () => {
    expect(stopAfterWave(rules, 1, results(["a", broken]))).toBeUndefined();
    expect(stopAfterWave(rules, 2, results(["a", broken], ["b", call(CallState.HELD)]))?.error).toMatchObject({
      reason: ErrorReason.FAN_OUT_STOPPED,
      metadata: { fan_out_id: "f", why: "failures" },
    });
  });

  it("stops where the canary has not succeeded, however many may fail", () => {
    const canary = { ...rules, canary: true, stopAfterFailures: 100 };
    expect(stopAfterWave(canary, 1, results(["a", broken]))?.error.metadata.why).toBe("canary");
    expect(stopAfterWave(canary, 1, results(["a", done]))).toBeUndefined();
    expect(stopAfterWave(canary, 2, results(["a", done], ["b", broken]))).toBeUndefined();
  });

  it("has succeeded only where every device of the plan has", () => {
    const all = results(["a", done], ["b", done], ["c", done], ["d", done]);
    expect(summaryOf("f", waves, all, undefined)).toMatchObject({
      succeeded: true,
      succeededCount: 4,
      message: "4 of 4 succeeded",
    });
    const some = summaryOf(
      "f",
      waves,
      results(["a", done], ["b", call(CallState.QUEUED)], ["c", broken]),
      stopAfterWave(rules, 2, results(["b", call(CallState.QUEUED)], ["c", broken])),
    );
    expect(some).toMatchObject({
      succeeded: false,
      devices: 4,
      succeededCount: 1,
      queued: ["b"],
      notStarted: ["d"],
      stopped: { reason: ErrorReason.FAN_OUT_STOPPED },
      failed: { c: { status: { state: CallState.SUCCEEDED, error: { reason: ErrorReason.TOOL_FAILED } } } },
    });
    expect(some.failed.c?.status?.output).toBeUndefined();
    expect(some.message).toContain(
      "1 of 4 succeeded, 1 did not, 1 queued for devices that are offline, 1 never started:",
    );
  });

  it("says nothing of a stop that kept nothing from being started", () => {
    const all = results(["a", done], ["b", done], ["c", done], ["d", broken]);
    const summary = summaryOf("f", waves, all, stopAfterWave({ ...rules, stopAfterFailures: 1 }, 3, all));
    expect(summary).toMatchObject({ succeeded: false, notStarted: [] });
    expect(summary.stopped).toBeUndefined();
  });
});
