import { Code, ConnectError } from "@connectrpc/connect";
import { codeToHttpStatus, codeToString } from "@connectrpc/connect/protocol-connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault, faultDetail, reasonName } from "../fault/fault.ts";
import { outageFault } from "../store/outage.ts";

/** An error as plain JSON. */
export interface FaultJson {
  /** The Connect code, such as "invalid_argument". */
  code: string;
  /** The reason's short name, such as "invalid_input"; empty for an error that has none. */
  reason: string;
  message: string;
  metadata: Record<string, string>;
  violations: { field: string; message: string }[];
}

/** The JSON of a fault and its HTTP status (https://connectrpc.com/docs/protocol#error-codes). */
export function faultToJson(error: ConnectError): { status: number; body: FaultJson } {
  const detail = faultDetail(error);
  const body = {
    code: codeToString(error.code),
    reason: detail === undefined ? "" : reasonName(detail.reason),
    message: error.rawMessage,
    metadata: { ...detail?.metadata },
    violations: (detail?.violations ?? []).map(({ field, message }) => ({ field, message })),
  };
  return { status: codeToHttpStatus(error.code), body };
}

/**
 * What a caller of a plain HTTP path gets: a fault as it is, a database that is unavailable as what `outageFault` says, and
 * anything else as INTERNAL with the request id.
 */
export function plainFault(error: unknown, requestId: string, unexpected: (cause: unknown) => void): ConnectError {
  if (error instanceof ConnectError) {
    if (faultDetail(error) !== undefined || error.code === Code.DeadlineExceeded || error.code === Code.Canceled)
      return error;
  }
  unexpected(error);
  const outage = outageFault(error);
  if (outage !== undefined) return outage;
  return fault(
    ErrorReason.INTERNAL,
    { request_id: requestId },
    { message: `internal error; request id ${requestId}`, cause: error },
  );
}
