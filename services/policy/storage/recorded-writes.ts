import { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import { CommitUnknown } from "../../../lib/store/postgres-errors.ts";
import type { PolicyTables } from "./tables.ts";

/** Writes that must be in the audit log before their result is returned. */
export type RecordedWrites = Pick<GroupCommit<PolicyTables>, "write" | "writeRow">;

/** Thrown by a job that wants to be rolled back, and is caught by its caller. */
export class RollBack extends Error {
  override readonly name = "RollBack";
}

/**
 * The group commit, with failures that callers understand: a job's own fault or RollBack stays, and whatever else keeps a
 * transaction from being committed becomes POLICY_UNAVAILABLE. No record, no action.
 */
export function recordedWrites(writes: GroupCommit<PolicyTables>, onError: (error: unknown) => void): RecordedWrites {
  const explain = (cause: unknown): never => {
    if (cause instanceof ConnectError || cause instanceof RollBack) throw cause;
    onError(cause);
    const message =
      cause instanceof CommitUnknown
        ? "it is not known whether it was written down: ask again"
        : "it could not be written down, so it did not happen";
    throw fault(ErrorReason.POLICY_UNAVAILABLE, {}, { message, cause });
  };
  return {
    write: (job) => writes.write(job).catch(explain),
    writeRow: (kind, row) => writes.writeRow(kind, row).catch(explain),
  };
}
