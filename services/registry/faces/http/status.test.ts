import { expect, test } from "vitest";
import { CallState } from "../../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { testCall } from "../../../../testkit/test-call.ts";
import { statusOf } from "./status.ts";

const ended = (state: CallState, reason: ErrorReason) => statusOf(testCall({ state, error: { reason } }));

test.each([
  [CallState.FAILED, "INVALID_INPUT", 400],
  [CallState.DENIED, "POLICY_DENIED", 403],
  [CallState.DENIED, "POLICY_BLOCKED", 403],
  [CallState.DENIED, "APPROVAL_DENIED", 403],
  [CallState.EXPIRED, "APPROVAL_EXPIRED", 504],
  [CallState.FAILED, "PATH_OUTSIDE_ROOTS", 403],
  [CallState.FAILED, "MANIFEST_REFUSED", 403],
  [CallState.FAILED, "OS_REFUSED", 403],
  [CallState.FAILED, "TARGET_NOT_FOUND", 404],
  [CallState.FAILED, "NOT_AVAILABLE", 501],
  [CallState.CANCELED, "CANCELED", 409],
  [CallState.FAILED, "POLICY_UNAVAILABLE", 503],
  [CallState.FAILED, "DEVICE_OFFLINE", 503],
  [CallState.TIMED_OUT, "TIMED_OUT", 504],
  [CallState.EXPIRED, "QUEUE_EXPIRED", 504],
  [CallState.FAILED, "TOOL_FAILED", 500],
  [CallState.UNKNOWN, "INTERRUPTED", 500],
] as const)("%i with %s is %i", (state, reason, status) => {
  expect(ended(state, ErrorReason[reason])).toBe(status);
});

test("a call that succeeded is 200, and one that has not ended is 202", () => {
  expect(statusOf(testCall({ state: CallState.SUCCEEDED }))).toBe(200);
  for (const state of [CallState.RECEIVED, CallState.HELD, CallState.QUEUED, CallState.PERMITTED, CallState.DISPATCHED])
    expect(statusOf(testCall({ state }))).toBe(202);
  expect(statusOf(testCall({ state: CallState.UNKNOWN }))).toBe(500);
});
