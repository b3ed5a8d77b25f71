import { ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Decision } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { PolicyDatabase } from "../storage/tables.ts";
import type { ApprovalRow, ApprovalStore } from "./approval-store.ts";
import type { ChangeFeed } from "./change-feed.ts";
import type { ApprovalRelease } from "./release.ts";

export interface ApprovalWaits {
  /**
   * Resolves with the decision, never a hold, once the approval is resolved. Rejects with NOT_FOUND, or with the signal's
   * reason when the caller gives up; the approval itself stays.
   */
  await(approvalId: string, signal: AbortSignal): Promise<Decision>;
}

export interface WaitOptions {
  db: PolicyDatabase;
  store: Pick<ApprovalStore, "find">;
  changes: Pick<ChangeFeed, "subscribe">;
  release: ApprovalRelease;
}

/** Waiters by approval, woken after the decision is committed. */
export function createApprovalWaits({ db, store, changes, release }: WaitOptions): ApprovalWaits {
  const waiting = new Map<string, Set<() => void>>();
  changes.subscribe(({ id, status }) => {
    if (status?.state === ApprovalState.PENDING) return;
    for (const wake of waiting.get(id) ?? []) wake();
  });

  const load = async (id: string): Promise<ApprovalRow> => {
    const row = await store.find(db, id);
    if (row) return row;
    throw fault(ErrorReason.NOT_FOUND, { resource: `approvals/${id}` }, { message: "no such approval" });
  };
  const resolved = (id: string, signal: AbortSignal): { promise: Promise<void>; stop: () => void } => {
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const abort = () => reject(signal.reason);
    const waiters = waiting.get(id) ?? new Set();
    waiting.set(id, waiters.add(resolve));
    signal.addEventListener("abort", abort, { once: true });
    const stop = () => {
      signal.removeEventListener("abort", abort);
      waiters.delete(resolve);
      if (waiters.size === 0) waiting.delete(id);
    };
    return { promise, stop };
  };

  return {
    async await(approvalId, signal) {
      signal.throwIfAborted();
      // Before the row is read, or a decision between the two would be missed.
      const wait = resolved(approvalId, signal);
      // It may be given up before it is awaited.
      wait.promise.catch(() => {});
      try {
        const row = await load(approvalId);
        if (row.state !== ApprovalState.PENDING) return await release.decisionOf(row);
        await wait.promise;
        return await release.decisionOf(await load(approvalId));
      } finally {
        wait.stop();
      }
    },
  };
}
