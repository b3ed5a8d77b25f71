import type { PolicyDatabase } from "../storage/tables.ts";
import type { ApprovalStore } from "./approval-store.ts";

/** Ends approvals that were not decided in time. */
export interface ApprovalExpiry {
  /** Notes the expiry of a new approval. */
  schedule(expireMs: number): void;
  /** Stops; pending approvals stay pending until the next start. */
  close(): Promise<void>;
}

export interface ExpiryOptions {
  db: PolicyDatabase;
  store: Pick<ApprovalStore, "due" | "nextExpiry">;
  expire: (approvalId: string) => Promise<void>;
  now: () => number;
  /** Receives why an approval could not be ended; it is tried again. */
  onError: (error: unknown) => void;
}

/** The longest that a timer of the runtime can wait, in milliseconds. */
const LONGEST_WAIT_MS = 2 ** 31 - 1;

/** From a failure to the next try, in milliseconds. */
const RETRY_MS = 1000;

/** One timer for the nearest expiry, set from the table at the start: what expired while policy was stopped ends now. */
export async function startApprovalExpiry(options: ExpiryOptions): Promise<ApprovalExpiry> {
  const { db, store, expire, now, onError } = options;
  let timer: NodeJS.Timeout | undefined;
  let wakeMs = Number.POSITIVE_INFINITY;
  let closed = false;
  let running = Promise.resolve();

  const schedule = (expireMs: number): void => {
    if (closed || expireMs >= wakeMs) return;
    clearTimeout(timer);
    wakeMs = expireMs;
    timer = setTimeout(wake, Math.min(LONGEST_WAIT_MS, Math.max(0, expireMs - now()))).unref();
  };
  const wake = (): void => {
    wakeMs = Number.POSITIVE_INFINITY;
    running = expireDue().catch((e: unknown) => {
      onError(e);
      schedule(now() + RETRY_MS);
    });
  };
  const expireDue = async (): Promise<void> => {
    for (const row of await store.due(db, now())) await expire(row.id);
    const next = await store.nextExpiry(db);
    if (next !== undefined) schedule(next);
  };

  await expireDue();
  return {
    schedule,
    async close() {
      closed = true;
      clearTimeout(timer);
      await running;
    },
  };
}
