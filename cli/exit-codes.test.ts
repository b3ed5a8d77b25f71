import { describe, expect, it } from "vitest";
import { CallState } from "../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason, ErrorReasonSchema } from "../gen/ts/reeve/common/v1/error_pb.ts";
import { testCall } from "../testkit/test-call.ts";
import { exitCodeOfCall } from "./call/exit-code.ts";
import { ExitCode, exitCodeHelp, exitCodeOfReason } from "./exit-codes.ts";

describe("exit codes", () => {
  it.each(ErrorReasonSchema.values.map(({ name, number }) => [name, number] as const))(
    "%s is never a success",
    (_, reason) => {
      expect(Object.values(ExitCode)).toContain(exitCodeOfReason(reason as ErrorReason));
      expect(exitCodeOfReason(reason as ErrorReason)).not.toBe(0);
    },
  );

  it("gives a reason of a newer control plane the code of an internal error", () => {
    expect(exitCodeOfReason(9999 as ErrorReason)).toBe(70);
  });

  it.each(Object.values(ExitCode))("%d is in the help", (code) => {
    expect(exitCodeHelp).toMatch(new RegExp(`^ +${code}  `, "m"));
  });

  it.each([
    [CallState.SUCCEEDED, 0],
    [CallState.RECEIVED, 0],
    [CallState.DISPATCHED, 0],
    [CallState.DENIED, 3],
    [CallState.DENIED, 3],
    [CallState.HELD, 4],
    [CallState.EXPIRED, 4],
    [CallState.TIMED_OUT, 6],
    [CallState.CANCELED, 7],
    [CallState.UNKNOWN, 8],
    [CallState.FAILED, 9],
  ])("a call in state %d ends with %d", (state, code) => {
    expect(exitCodeOfCall(testCall({ state }))).toBe(code);
  });

  it.each([
    [ErrorReason.DEVICE_OFFLINE, 5],
    [ErrorReason.POLICY_UNAVAILABLE, 5],
    [ErrorReason.MANIFEST_REFUSED, 3],
    [ErrorReason.TOOL_FAILED, 9],
    [ErrorReason.INTERNAL, 70],
  ])("a call that failed for reason %d ends with %d", (reason, code) => {
    expect(exitCodeOfCall(testCall({ state: CallState.FAILED, error: { reason } }))).toBe(code);
  });

  it.each([
    [{}, 0],
    [{ exitCode: 0 }, 0],
    [{ exitCode: 1 }, 1],
    [{ exitCode: 125 }, 125],
    [{ exitCode: 137 }, 137],
    [{ exitCode: 256 }, 9],
    [{ exitCode: -1 }, 9],
    [{ exitCode: 1.5 }, 9],
    [{ exitCode: "3" }, 0],
  ])("a program that ended with %j ends the command with %d", (output, code) => {
    expect(exitCodeOfCall(testCall({ state: CallState.SUCCEEDED, output }))).toBe(code);
  });
});
