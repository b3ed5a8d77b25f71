import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type Decision, type DecisionRequest, DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { Outbox } from "../../../lib/events/outbox.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { QueryRunner } from "../../../lib/store/prepared.ts";
import { approvalOf } from "../approvals/approval-message.ts";
import type { ApprovalStore } from "../approvals/approval-store.ts";
import type { ApprovalChanges } from "../approvals/changes.ts";
import { newApproval } from "../approvals/new-approval.ts";
import type { AuditLog } from "../audit/log.ts";
import { approvalRequested } from "../events.ts";
import { type GrantMinter, grantTemplate, type MintedGrant } from "../grants/mint.ts";
import { type RecordedWrites, RollBack } from "../recorded-writes.ts";
import type { PolicyDatabase } from "../tables.ts";
import { decidedRecord } from "./decided-record.ts";
import type { DecisionStore } from "./decision-store.ts";
import { type DecisionHead, denialDecision, holdDecision, permitDecision } from "./decisions.ts";
import type { Judge, Judged } from "./judge.ts";
import { requestDigest } from "./request-digest.ts";

/** Decides about calls, and writes down what it decided. */
export interface Authorizer {
  /**
   * Decides about one call. Decision, record, approval and event are one transaction, and nothing is returned before it
   * is committed. The same call id again returns the same decision, byte for byte; with another content it throws
   * CALL_ID_REUSED. Throws INVALID_INPUT for arguments that are not canonical, and POLICY_UNAVAILABLE where it cannot be
   * written down.
   */
  authorize(request: DecisionRequest): Promise<Decision>;
}

/** What deciding needs. */
export interface AuthorizerOptions {
  db: PolicyDatabase;
  writes: RecordedWrites;
  judge: Judge;
  decisions: DecisionStore;
  approvals: ApprovalStore;
  log: AuditLog;
  outbox: Outbox;
  minter: GrantMinter;
  changes: ApprovalChanges;
  now: () => number;
  newApprovalId: () => string;
}

/** The authorizer on policy's database. */
export function createAuthorizer(options: AuthorizerOptions): Authorizer {
  const { db, writes, decisions } = options;

  const write = async (judged: Judged, digest: string): Promise<Decision> => {
    const { callId } = judged.whole.request;
    const prepared = await prepareWrite(options, judged);
    const written = await writes.write(async (trx) => {
      const made = await prepared(trx);
      const { decision, idx } = made;
      const bytes = toBinary(DecisionSchema, decision);
      const isNew = await decisions.insert(trx, { call_id: callId, digest, decision: bytes, idx });
      if (!isNew) throw new RollBack("decided before");
      return made;
    });
    written.tell();
    return written.decision;
  };
  const decidedBefore = async (callId: string, digest: string): Promise<Decision> => {
    const row = await decisions.find(db, callId);
    if (row?.digest === digest) return fromBinary(DecisionSchema, row.decision);
    const message = "this call id was used for another request";
    throw fault(ErrorReason.CALL_ID_REUSED, { call_id: callId }, { message });
  };

  return {
    async authorize(request) {
      const judged = options.judge(request);
      const digest = requestDigest(judged.whole, judged.argsDigest);
      try {
        return await write(judged, digest);
      } catch (e: unknown) {
        if (e instanceof RollBack) return decidedBefore(request.callId, digest);
        throw e;
      }
    },
  };
}

/** A decision whose record was written. */
interface Written {
  decision: Decision;
  /** The record's index. */
  idx: number;
  /** Tells others, after the commit. */
  tell: () => void;
}

type Write = (trx: QueryRunner) => Promise<Written>;

async function prepareWrite(options: AuthorizerOptions, judged: Judged): Promise<Write> {
  switch (judged.judgement.effect) {
    case "allow": {
      const template = grantTemplate(judged.whole, judged.argsDigest);
      return writePermit(options, judged, await options.minter.mint(template, judged.policy.grantTtlMs));
    }
    case "hold":
      return writeHold(options, judged);
    default:
      return writeDenial(options, judged);
  }
}

function writePermit({ log, now }: AuthorizerOptions, judged: Judged, minted: MintedGrant): Write {
  return async (trx) => {
    const facts = { ...recordFacts(judged), decision: "permit" as const, grantId: minted.grantId, nowMs: now() };
    const idx = await log.append(trx, decidedRecord(judged.whole, facts), "elsewhere");
    return { decision: permitDecision(headOf(judged, idx), minted), idx, tell: nothing };
  };
}

function writeDenial({ log, now }: AuthorizerOptions, judged: Judged): Write {
  return async (trx) => {
    const facts = { ...recordFacts(judged), decision: "denial" as const, nowMs: now() };
    const idx = await log.append(trx, decidedRecord(judged.whole, facts), "elsewhere");
    const { reason, message } = judged.judgement;
    return { decision: denialDecision(headOf(judged, idx), reason, message), idx, tell: nothing };
  };
}

function writeHold(options: AuthorizerOptions, judged: Judged): Write {
  const { log, approvals, outbox, changes, now, newApprovalId } = options;
  return async (trx) => {
    const nowMs = now();
    const approvalId = newApprovalId();
    const record = decidedRecord(judged.whole, { ...recordFacts(judged), decision: "hold", approvalId, nowMs });
    const idx = await log.append(trx, record, "elsewhere");
    const approval = approvalOf(await approvals.insert(trx, newApproval(approvalId, { ...judged, nowMs }, record)));
    if (approval.spec) await outbox.enqueue(trx, [approvalRequested(approvalId, approval.spec, nowMs)]);
    const expireMs = nowMs + judged.policy.approvalTtlMs;
    const decision = holdDecision(headOf(judged, idx), approvalId, expireMs, judged.judgement.message);
    return { decision, idx, tell: () => changes.publish(approval) };
  };
}

function nothing(): void {}

function recordFacts({ judgement, policy, argsDigest }: Judged) {
  return { judgement, policyVersion: policy.version, argsDigest };
}

function headOf({ judgement, policy }: Judged, auditIndex: number): DecisionHead {
  return { ruleIds: judgement.ruleIds, policyVersion: policy.version, auditIndex };
}
