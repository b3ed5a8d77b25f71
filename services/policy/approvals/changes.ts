import type { Approval } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { PolicyDatabase } from "../tables.ts";
import { approvalOf } from "./approval-message.ts";
import type { ApprovalStore } from "./approval-store.ts";

/** Tells those who wait or watch that an approval is new or settled, on whichever replica that was. */
export interface ApprovalChanges {
  /** Says that there is news: called after a commit, or when a replica hears of another's. Never waits. */
  look(): void;
  /** Hears of every change, in the order of the log, until it is stopped. The listener must not throw. */
  listen(listener: (approval: Approval) => void): () => void;
  /** Begins to tell. Until then nobody hears of anything; what changed meanwhile is told first. */
  start(): void;
  /** Tells no more. */
  close(): Promise<void>;
}

/** What changes are found with. */
export interface ChangesOptions {
  db: PolicyDatabase;
  store: Pick<ApprovalStore, "newestChange" | "changedAfter">;
  /** How often to look for what other replicas changed, in milliseconds; undefined where there are none. */
  pollMs: number | undefined;
  /** Hears why the database could not be asked; it is asked again. */
  onError: (error: unknown) => void;
}

/** From a failure to the next try, in milliseconds. */
const RETRY_MS = 1000;

/** Changes that are read at a time. */
const PAGE = 100;

/**
 * Finds changes in the database, which is the only one to know: whatever says that there is news only makes it look
 * sooner. Each change has the index of its record in the log, and since all writes run one after another, nothing that is
 * committed later has a lower one.
 */
export async function openApprovalChanges({ db, store, pollMs, onError }: ChangesOptions): Promise<ApprovalChanges> {
  const listeners = new Set<(approval: Approval) => void>();
  let last = await store.newestChange(db);
  let state: "waiting" | "started" | "closed" = "waiting";
  let again = false;
  let looking: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  const tellNew = async (): Promise<void> => {
    for (let rows = await store.changedAfter(db, last, PAGE); rows.length > 0; ) {
      for (const row of rows) {
        if (state === "closed") return;
        last = row.change_idx;
        const approval = approvalOf(row);
        for (const listener of listeners) listener(approval);
      }
      rows = rows.length < PAGE ? [] : await store.changedAfter(db, last, PAGE);
    }
  };
  const lookUntilNothing = async (): Promise<void> => {
    let failed = false;
    do {
      again = false;
      await tellNew().catch((e: unknown) => {
        failed = true;
        onError(e);
      });
    } while (again && !failed);
    looking = undefined;
    if (state === "closed") return;
    clearTimeout(timer);
    const nextMs = failed ? RETRY_MS : pollMs;
    if (nextMs !== undefined) timer = setTimeout(look, nextMs).unref();
  };
  const look = (): void => {
    if (state !== "started") return;
    again = true;
    looking ??= lookUntilNothing();
  };

  return {
    look,
    listen(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    start() {
      state = "started";
      look();
    },
    async close() {
      state = "closed";
      clearTimeout(timer);
      await looking;
    },
  };
}
