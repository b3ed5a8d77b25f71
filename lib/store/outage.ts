import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";
import { CommitUnknown, DatabaseUnreachable } from "./postgres-errors.ts";

/**
 * The fault for a caller where the database was lost: NOT_READY where nothing was done, so that trying again is safe, and
 * INTERRUPTED where that is not known. Names no host. Undefined for every other error.
 */
export function outageFault(cause: unknown): ConnectError | undefined {
  if (cause instanceof DatabaseUnreachable) {
    const message = "the database cannot be reached; try again in a moment";
    return fault(ErrorReason.NOT_READY, {}, { message, cause });
  }
  if (cause instanceof CommitUnknown) {
    const message = "the database was lost while this was written down: look whether it was, before it is done again";
    return fault(ErrorReason.INTERRUPTED, {}, { message, cause });
  }
  return undefined;
}
