import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExecutionFinishedSchema } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { ExecutionOutcome } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { errorBytes } from "../../../lib/fault/error-bytes.ts";
import { deviceError, MAX_DETAIL_BYTES, MAX_MESSAGE } from "./device-error.ts";

const reported = (finished: MessageInitShape<typeof ExecutionFinishedSchema>) =>
  deviceError(create(ExecutionFinishedSchema, { outcome: ExecutionOutcome.FAILED, ...finished }));

const many = (count: number, text: string) =>
  Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, text]));

describe("what a device says of a failure", () => {
  it("is reported where it is the device's to say", () => {
    const error = { reason: ErrorReason.PATH_OUTSIDE_ROOTS, metadata: { field: "path", path: "/etc/shadow" } };
    expect(reported({ error, message: "outside", outcome: ExecutionOutcome.REFUSED })).toMatchObject({
      error,
      message: "outside",
    });
  });

  it.each([
    [ExecutionOutcome.FAILED, ErrorReason.POLICY_UNAVAILABLE, ErrorReason.TOOL_FAILED],
    [ExecutionOutcome.FAILED, ErrorReason.APPROVAL_REQUIRED, ErrorReason.TOOL_FAILED],
    [ExecutionOutcome.FAILED, 9999 as ErrorReason, ErrorReason.TOOL_FAILED],
    [ExecutionOutcome.INTERRUPTED, ErrorReason.DEVICE_OFFLINE, ErrorReason.INTERRUPTED],
    [ExecutionOutcome.REFUSED, ErrorReason.POLICY_DENIED, ErrorReason.RECEIPT_INVALID],
    [9999 as ExecutionOutcome, ErrorReason.UNSPECIFIED, ErrorReason.RECEIPT_INVALID],
  ])("has another reason where it is not: outcome %i, reason %i", (outcome, reason, expected) => {
    const { error } = reported({ outcome, error: { reason, metadata: { retry_after_ms: "1" } } });
    expect(error.reason).toBe(expected);
    expect(error.metadata.retry_after_ms).toBeUndefined();
  });

  it("has a reason where the device gives none", () => {
    expect(reported({}).error.reason).toBe(ErrorReason.TOOL_FAILED);
    expect(reported({ outcome: ExecutionOutcome.NOT_STARTED }).error.reason).toBe(ErrorReason.NOT_STARTED);
  });

  it("is sanitized", () => {
    const secret = `AKIA${"ABCDEFGHIJKLMNOP"}`;
    const { error, message } = reported({
      message: `\u001b[2Jkey ${secret}`,
      error: {
        reason: ErrorReason.INVALID_INPUT,
        metadata: { field: `\u001b]0;x\u0007a ${secret}`, "not a key": "x", __proto__x: "x" },
        violations: [{ field: "\u001b[1mf", message: secret }],
      },
    });
    const text = JSON.stringify({ metadata: error.metadata, violations: error.violations, message });
    expect(text).not.toContain(secret);
    expect(text).not.toContain("\\u001b");
    expect(Object.keys(error.metadata)).toEqual(["field"]);
  });

  it.each([
    ["many entries", { metadata: many(100_000, "x") }],
    ["long entries", { metadata: many(5, "x".repeat(1_000_000)) }],
    ["many violations", { violations: Array.from({ length: 100_000 }, () => ({ field: "", message: "" })) }],
    ["long violations", { violations: [{ field: "f".repeat(1_000_000), message: "m".repeat(1_000_000) }] }],
  ])("is bounded: %s", (_, error) => {
    const clean = reported({ error: { reason: ErrorReason.INVALID_INPUT, ...error }, message: "m".repeat(1_000_000) });
    expect(errorBytes(clean.error)).toBeLessThanOrEqual(MAX_DETAIL_BYTES);
    expect(Object.keys(clean.error.metadata).length + clean.error.violations.length).toBeLessThanOrEqual(16);
    expect(clean.message).toHaveLength(MAX_MESSAGE);
  });
});
