import type { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";

/** Why nothing runs. Expected, and therefore a value; never thrown. */
export interface Refusal {
  kind: "refused";
  reason: ErrorReason;
  /** Safe to show. */
  message: string;
  /** What the reason's comment in error.proto names. */
  metadata: Record<string, string>;
  /** What is wrong with the input, a field each. */
  violations: { field: string; message: string }[];
}

/** Builds a refusal. */
export function refusal(
  reason: ErrorReason,
  message: string,
  metadata: Record<string, string> = {},
  violations: Refusal["violations"] = [],
): Refusal {
  return { kind: "refused", reason, message, metadata, violations };
}
