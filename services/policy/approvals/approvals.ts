import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { SealingKey } from "../../../lib/identity/seal.ts";
import type { AuditLog } from "../audit/log.ts";
import type { OutcomeStore } from "../audit/outcome-store.ts";
import type { Judge } from "../decide/judge.ts";
import type { GrantMinter } from "../grants/mint.ts";
import type { Policy } from "../rules/policy.ts";
import type { Storage } from "../storage.ts";
import { type ApprovalStore, createApprovalStore } from "./approval-store.ts";
import { type ApprovalChanges, openApprovalChanges } from "./changes.ts";
import { startApprovalExpiry } from "./expiry.ts";
import { createApprovalRelease } from "./release.ts";
import { openRequestStore, type RequestStore } from "./request-store.ts";
import {
  type ApprovalRetentionOptions,
  DEFAULT_RETENTION_MS,
  keepApprovalRetention,
  sealOldApprovals,
} from "./retention.ts";
import { createReviewer } from "./review.ts";
import { type ApprovalSettler, createApprovalSettler } from "./settle.ts";
import { type ApprovalWaits, createApprovalWaits } from "./wait.ts";

/** Held calls: what is stored of them, who decides, who waits. */
export interface Approvals {
  store: ApprovalStore;
  requests: RequestStore;
  changes: ApprovalChanges;
  settler: ApprovalSettler;
  waits: ApprovalWaits;
  /** Stops to tell of changes and to end what expires; pending approvals stay pending. */
  close(): Promise<void>;
}

/** What approvals need. */
export interface ApprovalsOptions {
  storage: Storage;
  /** Seals what was asked about held calls. */
  sealing: SealingKey;
  log: AuditLog;
  outcomes: OutcomeStore;
  policy: () => Policy;
  judge: Judge;
  minter: GrantMinter;
  /** Whether devices trust what a key has signed, by its id. */
  isTrusted: (keyId: string) => boolean;
  /** How long arguments and cards are kept, in milliseconds. Default 30 days. */
  retentionMs?: number | undefined;
  now: () => number;
  onError: (error: unknown) => void;
}

/** How often to look for approvals that other replicas changed, in milliseconds. */
const POLL_MS = 250;

/** Opens the approvals; those that expired while nobody ran are ended first. */
export async function openApprovals(options: ApprovalsOptions): Promise<Approvals> {
  const { storage, log, now, onError } = options;
  const { db, writes, outbox } = storage;
  const kept: ApprovalRetentionOptions = {
    ...options,
    db,
    writes,
    retentionMs: options.retentionMs ?? DEFAULT_RETENTION_MS,
    mayRun: () => storage.sequencer.held,
  };
  await sealOldApprovals(kept);
  const requests = await openRequestStore(db, options.sealing);
  const store = createApprovalStore(db, options.sealing);
  const changes = await openApprovalChanges({ db, store, onError, pollMs: storage.shared ? POLL_MS : undefined });
  const settler = createApprovalSettler({ writes, store, requests, log, outbox, changes, now });
  const expiry = await startApprovalExpiry({ db, store, expire: settler.expire, now, onError });
  changes.listen(({ status, expireTime }) => {
    storage.nudge();
    if (status?.state === ApprovalState.PENDING && expireTime) expiry.schedule(timestampMs(expireTime));
  });
  const review = createReviewer({ ...options, db, requests });
  const release = createApprovalRelease({ ...options, writes, store, requests, review });
  const waits = createApprovalWaits({ db, store, changes, release });
  changes.start();
  const retention = keepApprovalRetention(kept);
  const close = async (): Promise<void> => {
    await retention.stop();
    await changes.close();
    await expiry.close();
  };
  return { store, requests, changes, settler, waits, close };
}
