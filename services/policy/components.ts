import type { EventBus } from "../../lib/events/bus.ts";
import { timeOrderedHex } from "../../lib/ids/time-ordered-id.ts";
import type { Logger } from "../../lib/log/log.ts";
import { toolByName } from "../../lib/toolschema/catalog-file.ts";
import { type Approvals, openApprovals } from "./approvals/approvals.ts";
import { createApprovalCanceler } from "./approvals/cancel.ts";
import { wakeOnEvents } from "./approvals/change-feed.ts";
import { createHeldQuota, DEFAULT_HELD_LIMITS } from "./approvals/held-quota.ts";
import { type Audit, openAudit } from "./audit/audit.ts";
import { createDeviceChangeRecorder, type DeviceChangeRecorder } from "./audit/device-changes.ts";
import { createOutcomeStore } from "./audit/outcome-store.ts";
import { createOutcomeRecorder, type OutcomeRecorder } from "./audit/outcomes.ts";
import { policyLoadedRecord } from "./audit/records.ts";
import { type Authorizer, createAuthorizer } from "./authorize.ts";
import { DEFAULT_CHECKPOINT_DELAY_MS, DEFAULT_ISSUER, DEFAULT_RELOAD_MS, type PolicyConfig } from "./config.ts";
import { createDecisionStore } from "./decisions/decision-store.ts";
import { createEvaluator, type Evaluator } from "./evaluate/evaluate.ts";
import { createGrantMinter } from "./grants/mint.ts";
import { ensureFirstKeys } from "./keys/first-keys.ts";
import { writeKeyFiles } from "./keys/key-files.ts";
import { createGrantSigner, type KeyRing, openKeyRing } from "./keys/key-ring.ts";
import { createKeyStore, type KeyStore } from "./keys/key-store.ts";
import { createKeyRotator, type KeyRotator } from "./keys/rotate.ts";
import { DEFAULT_POLICY_FILE } from "./rules/default-policy.ts";
import type { Policy } from "./rules/policy.ts";
import { openPolicySource, type PolicySource } from "./rules/policy-source.ts";
import type { PolicyState } from "./storage/state-dir.ts";
import type { Storage } from "./storage/storage.ts";

/** Policy's components. */
export interface Components {
  storage: Storage;
  keys: KeyRing;
  rotator: KeyRotator;
  audit: Audit;
  source: PolicySource;
  evaluate: Evaluator;
  approvals: Approvals;
  authorizer: Authorizer;
  outcomes: OutcomeRecorder;
  deviceChanges: DeviceChangeRecorder;
  /** Ends streams and watches when it aborts. */
  shutdown: AbortController;
  /** Receives errors that callers are not shown. */
  onError: (error: unknown) => void;
}

export interface ComponentsOptions {
  config: PolicyConfig;
  state: PolicyState;
  storage: Storage;
  /** Carries other replicas' events. Undefined: none. */
  bus: EventBus | undefined;
  logger: Logger;
  now: () => number;
  randomHex: (bytes: number) => string;
  onError: (error: unknown) => void;
  /** Gets what ends each component as soon as it is open. */
  closing: AsyncDisposableStack;
}

/** Opens the components in their order: the keys, the log, the policy, the approvals. Each needs the one before. */
export async function openComponents(options: ComponentsOptions): Promise<Components> {
  const { config, storage, bus, now, randomHex, onError, closing } = options;
  const { db, writes, outbox } = storage;
  const delayMs = config.checkpointDelayMs ?? DEFAULT_CHECKPOINT_DELAY_MS;
  const keyStore = createKeyStore(db);
  const keys = await openKeys(options, keyStore);
  const audit = await openAudit({ storage, keys, verifiers: keys.current().checkpointKeys, delayMs, now, onError });
  closing.defer(() => audit.checkpoints.close());
  const rotator = openRotator(options, { keyStore, keys, audit });
  closing.defer(() => rotator.close());
  const source = await openSource(options, audit);
  closing.defer(() => source.close());
  const minter = createGrantMinter({
    signer: createGrantSigner(keys),
    issuer: config.issuer ?? DEFAULT_ISSUER,
    now,
    // The device keeps it in an index for a month.
    newGrantId: () => timeOrderedHex(now(), randomHex),
  });
  const policy = (): Policy => source.current().policy;
  const evaluate = createEvaluator({ policy, lookup: toolByName });
  const outcomeStore = createOutcomeStore(db);
  const approvals = await openApprovals({
    storage,
    sealing: options.state.sealing,
    retentionMs: config.callRetentionMs,
    log: audit.log,
    outcomes: outcomeStore,
    policy,
    evaluate,
    minter,
    isTrusted: (keyId) => keys.current().grantKeys.some((key) => key.keyId === keyId),
    now,
    onError,
  });
  closing.defer(approvals.close);
  if (bus && storage.shared) closing.defer(await wakeOnEvents(bus, approvals.changes, onError));
  const decisions = createDecisionStore(db);
  const authorizer = createAuthorizer({
    db,
    writes,
    evaluate,
    decisions,
    outcomes: outcomeStore,
    approvals: approvals.store,
    requests: approvals.requests,
    heldQuota: createHeldQuota(db, { ...DEFAULT_HELD_LIMITS, ...config.quotas }),
    changes: approvals.changes,
    log: audit.log,
    outbox,
    minter,
    now,
    newApprovalId: () => `apr-${randomHex(8)}`,
  });
  const onEnded = createApprovalCanceler({ db, decisions, ...approvals });
  const outcomes = createOutcomeRecorder({ writes, store: outcomeStore, log: audit.log, onEnded, now });
  const deviceChanges = createDeviceChangeRecorder({ db, writes, log: audit.log, now });
  const shutdown = new AbortController();
  closing.defer(async () => shutdown.abort());
  const recorders = { outcomes, deviceChanges };
  return { storage, keys, rotator, audit, source, evaluate, approvals, authorizer, ...recorders, shutdown, onError };
}

async function openKeys({ config, state, storage, now }: ComponentsOptions, store: KeyStore): Promise<KeyRing> {
  const { db, writes } = storage;
  const { sealing, path: stateDir } = state;
  await ensureFirstKeys({ db, writes, store, sealing, origin: config.origin, now });
  const keys = await openKeyRing(db, store, sealing);
  await writeKeyFiles(stateDir, keys.current());
  return keys;
}

function openRotator(
  { config, state, storage, now, logger, onError }: ComponentsOptions,
  { keyStore: store, keys: ring, audit }: { keyStore: KeyStore; keys: KeyRing; audit: Audit },
): KeyRotator {
  ring.onChange((keys) => {
    logger.info({ grant_key: keys.grantKey.keyId, revision: keys.revision }, "keys changed");
    writeKeyFiles(state.path, keys).catch(onError);
  });
  const pollMs = config.reloadMs ?? DEFAULT_RELOAD_MS;
  const { writes } = storage;
  return createKeyRotator({ writes, store, ring, log: audit.log, sealing: state.sealing, now, pollMs, onError });
}

function openSource({ config, storage, logger, now, onError }: ComponentsOptions, audit: Audit): Promise<PolicySource> {
  return openPolicySource({
    path: config.policyFile ?? DEFAULT_POLICY_FILE,
    lookup: toolByName,
    pollMs: config.reloadMs ?? DEFAULT_RELOAD_MS,
    now,
    onError,
    async record(version, problem) {
      const record = policyLoadedRecord(version, problem, now());
      await storage.writes.write((trx) => audit.log.append(trx, record, "elsewhere"));
      if (problem === "") logger.info({ version }, "policy loaded");
      else logger.error({ version, problem }, "policy refused");
    },
  });
}
