import { blockReason } from "../../lib/blocklist/blocklist.ts";
import type { Logger } from "../../lib/log/log.ts";
import { createBatchSigner } from "../../lib/sign/batch.ts";
import { GRANT_TYPE } from "../../lib/sign/payload-types.ts";
import { toolByName } from "../../lib/toolschema/catalogue-file.ts";
import { type Approvals, openApprovals } from "./approvals/approvals.ts";
import { createHoldEnder } from "./approvals/end-hold.ts";
import { type Audit, openAudit } from "./audit/audit.ts";
import { createOutcomeRecorder, type OutcomeRecorder } from "./audit/outcomes.ts";
import { policyLoadedRecord } from "./audit/policy-records.ts";
import { DEFAULT_CHECKPOINT_DELAY_MS, DEFAULT_ISSUER, DEFAULT_RELOAD_MS, type PolicyConfig } from "./config.ts";
import { type Authorizer, createAuthorizer } from "./decide/authorize.ts";
import { createDecisionStore } from "./decide/decision-store.ts";
import { createJudge, type Judge } from "./decide/judge.ts";
import { createGrantMinter } from "./grants/mint.ts";
import { DEFAULT_POLICY_FILE } from "./rules/default-policy.ts";
import { openPolicySource, type PolicySource } from "./rules/policy-source.ts";
import type { PolicyState } from "./state-dir.ts";
import type { Storage } from "./storage.ts";

/** What policy is made of. */
export interface Parts {
  state: PolicyState;
  storage: Storage;
  audit: Audit;
  source: PolicySource;
  judge: Judge;
  approvals: Approvals;
  authorizer: Authorizer;
  outcomes: OutcomeRecorder;
  /** Ends links and watches when it aborts. */
  shutdown: AbortController;
  /** Hears of errors that callers are told little about. */
  onError: (error: unknown) => void;
}

/** What the parts are made with. */
export interface PartsOptions {
  config: PolicyConfig;
  state: PolicyState;
  storage: Storage;
  logger: Logger;
  now: () => number;
  randomHex: (bytes: number) => string;
  onError: (error: unknown) => void;
  /** Told how to end each part as soon as it is there; the last one told ends first. */
  onClose: (closer: () => Promise<void>) => void;
}

/** Opens the parts in their order: the log, the policy, the approvals. Each rests on the one before. */
export async function openParts(options: PartsOptions): Promise<Parts> {
  const { config, state, storage, now, randomHex, onError, onClose } = options;
  const { db, writes, outbox } = storage;
  const delayMs = config.checkpointDelayMs ?? DEFAULT_CHECKPOINT_DELAY_MS;
  const keys = { key: state.checkpointKey, noteKey: state.noteKey };
  const audit = await openAudit({ db, writes, ...keys, delayMs, now, onError });
  onClose(() => audit.checkpoints.close());
  const source = await openSource(options, audit);
  onClose(() => source.close());
  const minter = createGrantMinter({
    signer: createBatchSigner({ key: state.grantKey, statementType: GRANT_TYPE }),
    issuer: config.issuer ?? DEFAULT_ISSUER,
    now,
    newGrantId: () => randomHex(16),
  });
  const approvals = await openApprovals({ storage, log: audit.log, minter, now, onError });
  onClose(approvals.close);
  const judge = createJudge({ policy: () => source.current().policy, blockReason, lookup: toolByName });
  const decisions = createDecisionStore(db);
  const authorizer = createAuthorizer({
    db,
    writes,
    judge,
    decisions,
    approvals: approvals.store,
    changes: approvals.changes,
    log: audit.log,
    outbox,
    minter,
    now,
    newApprovalId: () => `apr-${randomHex(8)}`,
  });
  const onEnded = createHoldEnder({ decisions, ...approvals });
  const outcomes = createOutcomeRecorder({ db, writes, log: audit.log, onEnded, now });
  const shutdown = new AbortController();
  return { state, storage, audit, source, judge, approvals, authorizer, outcomes, shutdown, onError };
}

function openSource({ config, storage, logger, now, onError }: PartsOptions, audit: Audit): Promise<PolicySource> {
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
