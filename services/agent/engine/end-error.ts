import { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import { ModelError } from "../providers/model.ts";
import type { RunEnd } from "./engine.ts";

/** What a run's status says of what ended it. What is neither a fault nor the model's goes to the log only. */
export function endError(error: unknown): NonNullable<RunEnd["error"]> {
  if (error instanceof ModelError) {
    return { reason: ErrorReason.MODEL_FAILED, metadata: { kind: error.kind }, message: error.message };
  }
  const detail = faultDetail(error);
  if (detail === undefined) return { reason: ErrorReason.INTERNAL, message: "something unexpected happened" };
  return { reason: detail.reason, metadata: detail.metadata, message: ConnectError.from(error).rawMessage };
}
