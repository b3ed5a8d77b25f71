import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../fault/fault.ts";

/** A frame that breaks the rules of a link: it ends the link. Code invalid_argument. */
export function malformed(field: string, rule: string, message: string, cause?: unknown): ConnectError {
  return fault(ErrorReason.INVALID_INPUT, { field, rule }, { message, cause });
}

/** More than a link takes. Code invalid_argument. */
export function tooMuch(field: string, limit: number, message: string): ConnectError {
  return fault(ErrorReason.INPUT_TOO_LARGE, { field, limit: String(limit) }, { message });
}

/** The other side has been silent for too long. Code unavailable: a new link may do better. */
export function silent(message: string): ConnectError {
  return fault(ErrorReason.NOT_READY, {}, { message });
}
