import { codeToHttpStatus } from "@connectrpc/connect/protocol-connect";
import { CallState } from "../../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { codeOf } from "../../../../lib/fault/fault.ts";
import type { GovernedCall } from "../../calls/governed-call.ts";
import { isEnd } from "../../calls/lifecycle.ts";

/** Where the status of the reason's code would say something else to a caller of plain HTTP. */
const STATUS = new Map<ErrorReason, number>([
  // The tool ran and did not do its work: nothing that the caller could send in another way.
  [ErrorReason.TOOL_FAILED, 500],
  // 499 is no registered status, and means that this very request was canceled.
  [ErrorReason.CANCELED, 409],
]);

/**
 * The HTTP status of a call: 200 where it succeeded, 202 where it has not ended, else that of its error's Connect code
 * (https://connectrpc.com/docs/protocol#error-codes). An end that is not known is 500.
 */
export function statusOf({ status: { state, error } }: GovernedCall): number {
  if (state === CallState.SUCCEEDED) return 200;
  if (!isEnd(state)) return 202;
  const reason = error?.reason ?? ErrorReason.INTERNAL;
  return STATUS.get(reason) ?? codeToHttpStatus(codeOf(reason));
}
