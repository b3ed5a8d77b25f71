import { Code, ConnectError } from "@connectrpc/connect";
import { faultDetail } from "../fault/fault.ts";

/** Codes with which node says that a connection or a stream ended while it was read or written. */
const ENDED = new Set([
  "ECONNRESET",
  "EPIPE",
  "ERR_STREAM_PREMATURE_CLOSE",
  "ERR_STREAM_DESTROYED",
  "ERR_STREAM_WRITE_AFTER_END",
  "ERR_HTTP2_INVALID_STREAM",
  "ERR_HTTP2_STREAM_CANCEL",
  "ERR_HTTP2_STREAM_ERROR",
  "ERR_HTTP2_SESSION_ERROR",
]);

/**
 * True for the error with which node or connect says that the caller left while its request was read or its answer
 * written. Ask only where the caller is known to be gone: a handler's own connections end in the same words.
 */
export function isDeparture(error: unknown): boolean {
  if (error instanceof ConnectError)
    return error.code === Code.Aborted && faultDetail(error) === undefined && !error.isWireError;
  if (!(error instanceof Error)) return false;
  return error.name === "AbortError" || ("code" in error && typeof error.code === "string" && ENDED.has(error.code));
}

/**
 * What an RPC whose signal was aborted ends with: the deadline or the drain where that is the reason. Otherwise its caller
 * left, with whatever code its connection ended: the choice of a code is the caller's, and is no error of ours.
 */
export function departure(reason: unknown): ConnectError {
  if (reason instanceof ConnectError && (reason.code === Code.DeadlineExceeded || faultDetail(reason) !== undefined)) {
    return reason;
  }
  return new ConnectError("the caller left", Code.Canceled, undefined, undefined, reason);
}
