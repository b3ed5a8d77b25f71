import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { SealingKey } from "../../../lib/identity/seal.ts";
import type { AuditLog } from "../audit/log.ts";
import type { OutcomeStore } from "../audit/outcome-store.ts";
import type { Evaluator } from "../evaluate/evaluate.ts";
import type { GrantMinter } from "../grants/mint.ts";
import type { Policy } from "../rules/policy.ts";
import type { Storage } from "../storage/storage.ts";
import { type ApprovalStore, createApprovalStore } from "./approval-store.ts";
import { type ChangeFeed, openChangeFeed } from "./change-feed.ts";
import { startApprovalExpiry } from "./expiry.ts";
import { type HeldRequests, openHeldRequests } from "./held-requests.ts";
import { createApprovalRelease } from "./release.ts";
import { type ApprovalResolver, createApprovalResolver } from "./resolve.ts";
import { DEFAULT_RETENTION_MS, startApprovalRetention } from "./retention.ts";
import { createReviewer } from "./validity.ts";
import { type ApprovalWaits, createApprovalWaits } from "./wait.ts";

/** Held calls: their store, who decides, who waits. */
export interface Approvals {
  store: ApprovalStore;
  requests: HeldRequests;
  changes: ChangeFeed;
  resolver: ApprovalResolver;
  waits: ApprovalWaits;
  /** Stops notifying and expiring; pending approvals stay pending. */
  close(): Promise<void>;
}

export interface ApprovalsOptions {
  storage: Storage;
  /** Seals what was asked about held calls. */
  sealing: SealingKey;
  log: AuditLog;
  outcomes: OutcomeStore;
  policy: () => Policy;
  evaluate: Evaluator;
  minter: GrantMinter;
  /** Whether devices trust what a key has signed, by its id. */
  isTrusted: (keyId: string) => boolean;
  /** How long arguments and summaries are kept, in milliseconds. Default 30 days. */
  retentionMs?: number | undefined;
  now: () => number;
  onError: (error: unknown) => void;
}

/** How often to look for approvals that other replicas changed, in milliseconds. */
const POLL_MS = 250;

/** Opens the approvals; those that expired while policy was stopped are ended first. */
export async function openApprovals(options: ApprovalsOptions): Promise<Approvals> {
  const { storage, log, now, onError } = options;
  const { db, writes, outbox } = storage;
  const requests = await openHeldRequests(db, options.sealing);
  const store = createApprovalStore(db, options.sealing);
  const changes = await openChangeFeed({ db, store, onError, pollMs: storage.shared ? POLL_MS : undefined });
  const resolver = createApprovalResolver({ writes, store, requests, log, outbox, changes, now });
  const expiry = await startApprovalExpiry({ db, store, expire: resolver.expire, now, onError });
  changes.subscribe(({ status, expireTime }) => {
    storage.wakeRelay();
    if (status?.state === ApprovalState.PENDING && expireTime) expiry.schedule(timestampMs(expireTime));
  });
  const review = createReviewer({ ...options, db, requests });
  const release = createApprovalRelease({ ...options, writes, store, requests, review });
  const waits = createApprovalWaits({ db, store, changes, release });
  changes.start();
  const retention = startApprovalRetention({
    ...options,
    db,
    writes,
    retentionMs: options.retentionMs ?? DEFAULT_RETENTION_MS,
    mayRun: () => storage.sequencer.held,
  });
  const close = async (): Promise<void> => {
    await retention.stop();
    await changes.close();
    await expiry.close();
  };
  return { store, requests, changes, resolver, waits, close };
}
