import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";

/**
 * Rejects the wait for a call that was written down and was then interrupted, as when the database was unavailable.
 * On PostgreSQL some replica resumes it within seconds, on SQLite the next start does.
 */
export function interrupted(callId: string, cause?: unknown): ConnectError {
  const message = `the registry lost hold of the call ${callId}, and it is not known yet how it ended; ask for it by its id`;
  return fault(ErrorReason.INTERRUPTED, { call_id: callId }, { message, cause });
}
