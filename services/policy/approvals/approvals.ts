import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ApprovalState } from "../../../gen/ts/reeve/policy/v1/approval_pb.ts";
import type { AuditLog } from "../audit/log.ts";
import type { GrantMinter } from "../grants/mint.ts";
import type { Storage } from "../storage.ts";
import { type ApprovalStore, createApprovalStore } from "./approval-store.ts";
import { type ApprovalChanges, openApprovalChanges } from "./changes.ts";
import { startApprovalExpiry } from "./expiry.ts";
import { createApprovalRelease } from "./release.ts";
import { type ApprovalSettler, createApprovalSettler } from "./settle.ts";
import { type ApprovalWaits, createApprovalWaits } from "./wait.ts";

/** Held calls: what is stored of them, who decides, who waits. */
export interface Approvals {
  store: ApprovalStore;
  changes: ApprovalChanges;
  settler: ApprovalSettler;
  waits: ApprovalWaits;
  /** Stops to tell of changes and to end what expires; pending approvals stay pending. */
  close(): Promise<void>;
}

/** What approvals need. */
export interface ApprovalsOptions {
  storage: Storage;
  log: AuditLog;
  minter: GrantMinter;
  now: () => number;
  onError: (error: unknown) => void;
}

/** How often to look for approvals that other replicas changed, in milliseconds. */
const POLL_MS = 250;

/** Opens the approvals; those that expired while nobody ran are ended first. */
export async function openApprovals({ storage, log, minter, now, onError }: ApprovalsOptions): Promise<Approvals> {
  const { db, writes, outbox } = storage;
  const store = createApprovalStore(db);
  const changes = await openApprovalChanges({ db, store, onError, pollMs: storage.shared ? POLL_MS : undefined });
  const settler = createApprovalSettler({ writes, store, log, outbox, changes, now });
  const expiry = await startApprovalExpiry({ db, store, expire: settler.expire, now, onError });
  changes.listen(({ status, expireTime }) => {
    storage.nudge();
    if (status?.state === ApprovalState.PENDING && expireTime) expiry.schedule(timestampMs(expireTime));
  });
  const release = createApprovalRelease({ writes, store, log, minter, now });
  const waits = createApprovalWaits({ db, store, changes, release });
  changes.start();
  const close = async (): Promise<void> => {
    await changes.close();
    await expiry.close();
  };
  return { store, changes, settler, waits, close };
}
