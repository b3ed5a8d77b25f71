import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault, faultDetail } from "../fault/fault.ts";
import { outageFault } from "../store/outage.ts";
import type { Call, CallObserver } from "./call.ts";
import { parseFault } from "./parse-fault.ts";

/** Connect's own errors that say all there is to say, without anything from inside. */
const PLAIN = new Set([Code.Canceled, Code.DeadlineExceeded, Code.Unimplemented]);

/**
 * What a caller is told of an error. A fault stays what it is, also one that came over the wire from another service.
 * What connect found wrong with the request becomes INVALID_INPUT or INPUT_TOO_LARGE. A deadline, a caller who left and
 * an RPC that is not implemented stay plain. A database that is away becomes what `outageFault` says, and anything else
 * INTERNAL with the request id; the cause goes to the observer only.
 */
export function toFault(error: unknown, call: Call, observer: CallObserver): ConnectError {
  if (call.signal.aborted && isAbort(error)) return departure(call.signal.reason);
  if (error instanceof ConnectError) {
    if (faultDetail(error) !== undefined) return error;
    if (PLAIN.has(error.code)) return error;
    const parsing = error.isWireError ? undefined : parseFault(error, call);
    if (parsing !== undefined) return parsing;
  }
  observer.unexpected(call, error);
  const outage = outageFault(error);
  if (outage !== undefined) return outage;
  const metadata = { request_id: call.requestId };
  return fault(ErrorReason.INTERNAL, metadata, {
    message: `internal error; request id ${call.requestId}`,
    cause: error,
  });
}

/** As `toFault`, for an error that connect holds already: it is about to write this very object. */
export function typeInPlace(error: ConnectError, call: Call, observer: CallObserver): ConnectError {
  const typed = toFault(error, call, observer);
  if (typed === error) return error;
  const { code, rawMessage, message, details } = typed;
  return Object.assign(error, { code, rawMessage, message, details });
}

/** How node and connect say that the caller went away while something waited for it. */
function isAbort(error: unknown): boolean {
  if (error instanceof ConnectError)
    return error.code === Code.Aborted && faultDetail(error) === undefined && !error.isWireError;
  return error instanceof Error && (error.name === "AbortError" || ("code" in error && error.code === "ECONNRESET"));
}

function departure(reason: unknown): ConnectError {
  if (reason instanceof ConnectError && reason.code !== Code.Aborted) return reason;
  return new ConnectError("the caller went away", Code.Canceled, undefined, undefined, reason);
}
