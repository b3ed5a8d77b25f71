import type { Approval } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { EventBus } from "../../../lib/events/bus.ts";
import type { PolicyDatabase } from "../storage/tables.ts";
import { approvalOf } from "./approval-message.ts";
import type { ApprovalStore } from "./approval-store.ts";

/** Notifies subscribers that an approval is new or resolved, on whichever replica that was. */
export interface ChangeFeed {
  /** A hint that there is a change: after a commit, or when another replica gives one. Never waits. */
  wake(): void;
  /** Calls the listener with every change, in the order of the log, until it is stopped. The listener must not throw. */
  subscribe(listener: (approval: Approval) => void): () => void;
  /** Begins to notify. What changed before is delivered first. */
  start(): void;
  close(): Promise<void>;
}

export interface ChangeFeedOptions {
  db: PolicyDatabase;
  store: Pick<ApprovalStore, "newestChange" | "changedAfter">;
  /** How often to look for what other replicas changed, in milliseconds; undefined where there are none. */
  pollMs: number | undefined;
  /** Receives why the database could not be queried; it is tried again. */
  onError: (error: unknown) => void;
}

/** From a failure to the next try, in milliseconds. */
const RETRY_MS = 1000;

/** Changes that are read at a time. */
const PAGE = 100;

/**
 * Finds changes in the database, which is the only truth: a hint only makes it look sooner. Each change has the index of its record in the log, and since all writes run one after another, nothing that is
 * committed later has a lower one.
 */
export async function openChangeFeed({ db, store, pollMs, onError }: ChangeFeedOptions): Promise<ChangeFeed> {
  const listeners = new Set<(approval: Approval) => void>();
  let last = await store.newestChange(db);
  let state: "waiting" | "started" | "closed" = "waiting";
  let again = false;
  let looking: Promise<void> | undefined;
  let timer: NodeJS.Timeout | undefined;

  const notifyNew = async (): Promise<void> => {
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
      await notifyNew().catch((e: unknown) => {
        failed = true;
        onError(e);
      });
    } while (again && !failed);
    looking = undefined;
    if (state === "closed") return;
    clearTimeout(timer);
    const nextMs = failed ? RETRY_MS : pollMs;
    if (nextMs !== undefined) timer = setTimeout(wake, nextMs).unref();
  };
  const wake = (): void => {
    if (state !== "started") return;
    again = true;
    looking ??= lookUntilNothing();
  };

  return {
    wake,
    subscribe(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    start() {
      state = "started";
      wake();
    },
    async close() {
      state = "closed";
      clearTimeout(timer);
      await looking;
    },
  };
}

/** The events of this package; all are about approvals. */
const SUBJECT = "reeve.approval.v1.>";

/**
 * Wakes the feed when a replica publishes a change of an approval, which is sooner than the next regular look. Nothing
 * depends on it: a bus that is unavailable is only reported. Returns what ends it.
 */
export async function wakeOnEvents(
  bus: EventBus,
  changes: Pick<ChangeFeed, "wake">,
  onError: (error: unknown) => void,
): Promise<() => Promise<void>> {
  try {
    const subscription = await bus.subscribe({ subject: SUBJECT, handler: async () => changes.wake() });
    return () => subscription.close();
  } catch (e: unknown) {
    onError(e);
    return async () => {};
  }
}
