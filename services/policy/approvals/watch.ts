import { type Approval, ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { PolicyDatabase } from "../storage/tables.ts";
import { approvalOf } from "./approval-message.ts";
import type { ApprovalStore } from "./approval-store.ts";
import type { ChangeFeed } from "./change-feed.ts";

export interface WatchOptions {
  db: PolicyDatabase;
  store: Pick<ApprovalStore, "pending">;
  changes: ChangeFeed;
  /** Ends the watch. */
  signal: AbortSignal;
}

/**
 * The pending approvals, then each one as it changes, until the signal. Of an approval that changes again before it was
 * read only the newest state is sent, so a slow reader holds no more than one message for each.
 */
export async function* watchApprovals({ db, store, changes, signal }: WatchOptions): AsyncGenerator<Approval> {
  const news = new Map<string, Approval>();
  const pending = new Set<string>();
  let wake = (): void => {};
  const onAbort = (): void => wake();
  const stop = changes.subscribe((approval) => {
    // It was among the pending ones already.
    if (approval.status?.state === ApprovalState.PENDING && pending.has(approval.id)) return;
    pending.delete(approval.id);
    news.set(approval.id, approval);
    wake();
  });
  signal.addEventListener("abort", onAbort);
  try {
    // The subscription began before this read, so that no change is missed in between.
    const rows = await store.pending(db);
    for (const { id } of rows) {
      if (news.get(id)?.status?.state === ApprovalState.PENDING) news.delete(id);
      pending.add(id);
    }
    for (const row of rows) yield approvalOf(row);
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
