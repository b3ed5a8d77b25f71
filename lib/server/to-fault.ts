import { Code, ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault, faultDetail } from "../fault/fault.ts";
import { outageFault } from "../store/outage.ts";
import type { Call, CallObserver } from "./call.ts";
import { departure, isDeparture } from "./departure.ts";
import { parseFault } from "./parse-fault.ts";

/** Connect's own errors that say all there is to say, without anything from inside. */
const PLAIN = new Set([Code.Canceled, Code.DeadlineExceeded, Code.Unimplemented]);

/**
 * The error that a caller gets. A fault stays what it is, also one that came over the wire from another service.
 * What connect found wrong with the request becomes INVALID_INPUT or INPUT_TOO_LARGE. A deadline, a caller who left and
 * an RPC that is not implemented stay plain. A database that is unavailable becomes what `outageFault` says, and anything else
 * INTERNAL with the request id; the cause goes to the observer only.
 */
export function toFault(error: unknown, call: Call, observer: CallObserver): ConnectError {
  if (isGone(error, call)) return departure(call.signal.reason);
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

/** True where the RPC is over for its caller, and the error only says so. */
function isGone(error: unknown, { signal, left }: Call): boolean {
  if (!signal.aborted) return false;
  return isDeparture(error) || (left?.aborted === true && error === left.reason);
}
