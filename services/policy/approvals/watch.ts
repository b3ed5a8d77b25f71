import type { Approval } from "../../../gen/ts/reeve/policy/v1/approval_pb.ts";
import type { PolicyDatabase } from "../tables.ts";
import { approvalOf } from "./approval-message.ts";
import type { ApprovalStore } from "./approval-store.ts";
import type { ApprovalChanges } from "./changes.ts";

/** What watching needs. */
export interface WatchOptions {
  db: PolicyDatabase;
  store: Pick<ApprovalStore, "pending">;
  changes: ApprovalChanges;
  /** Ends the watch. */
  signal: AbortSignal;
}

/**
 * The pending approvals, then each one as it changes, until the signal. Of an approval that changes again before it was
 * read only the newest state is sent, so a slow reader holds no more than one message for each.
 */
export async function* watchApprovals({ db, store, changes, signal }: WatchOptions): AsyncGenerator<Approval> {
  const news = new Map<string, Approval>();
  let wake = (): void => {};
  const onAbort = (): void => wake();
  const stop = changes.listen((approval) => {
    news.set(approval.id, approval);
    wake();
  });
  signal.addEventListener("abort", onAbort);
  try {
    // Listening began before this read: a change in between comes twice rather than never.
    for (const row of await store.pending(db)) yield approvalOf(row);
    while (!signal.aborted) {
      for (const [id, approval] of news) {
        news.delete(id);
        yield approval;
      }
      if (news.size > 0 || signal.aborted) continue;
      await new Promise<void>((resolve) => {
        wake = resolve;
      });
    }
  } finally {
    stop();
    signal.removeEventListener("abort", onAbort);
  }
}
