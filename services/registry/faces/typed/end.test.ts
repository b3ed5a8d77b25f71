import { Code, ConnectError } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { CallState } from "../../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Shell } from "../../../../gen/ts/reeve/tools/v1/shell_pb.ts";
import { faultDetail } from "../../../../lib/fault/fault.ts";
import { type TestCallFields, testCall } from "../../../../testkit/test-call.ts";
import { responseOf } from "./end.ts";

const OUTPUT = Shell.method.exec.output;

function refusal(call: TestCallFields) {
  try {
    responseOf(OUTPUT, testCall({ id: "c1", ...call }));
  } catch (error: unknown) {
    const { code, rawMessage } = ConnectError.from(error);
    return { code, rawMessage, reason: faultDetail(error)?.reason, metadata: faultDetail(error)?.metadata };
  }
  throw new Error("it was no refusal");
}

describe("responseOf", () => {
  test("reads the output, without what this version does not know", () => {
    const output = { stdout: "hi", exitCode: 3, fromTomorrow: true };
    const response = responseOf(OUTPUT, testCall({ state: CallState.SUCCEEDED, output }));
    expect(response).toMatchObject({ stdout: "hi", exitCode: 3 });
  });

  test("says so where the output is not of the tool's type", () => {
    const refused = refusal({ state: CallState.SUCCEEDED, output: { exitCode: "none" } });
    expect(refused).toMatchObject({ code: Code.DataLoss, reason: ErrorReason.RECEIPT_INVALID });
    expect(refused.rawMessage).toContain("the tool ran");
  });

  test("names the approval of a held call", () => {
    expect(refusal({ state: CallState.HELD, approval: { id: "a1" } })).toMatchObject({
      code: Code.FailedPrecondition,
      reason: ErrorReason.APPROVAL_REQUIRED,
      metadata: { approval_id: "a1", call_id: "c1" },
    });
  });

  test("throws a call's own error with its code and words", () => {
    const error = { reason: ErrorReason.TIMED_OUT, metadata: { timeout_ms: "5" } };
    expect(refusal({ state: CallState.TIMED_OUT, error, errorMessage: "too long" })).toMatchObject({
      code: Code.DeadlineExceeded,
      rawMessage: "too long",
      ...error,
    });
  });

  test("never takes a call without an end for a success", () => {
    expect(refusal({ state: CallState.DISPATCHED })).toMatchObject({ reason: ErrorReason.INTERRUPTED });
    expect(refusal({ state: CallState.UNKNOWN })).toMatchObject({ code: Code.Unknown });
  });
});
