import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type Decision, type DecisionRequest, DecisionSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { Outbox } from "../../../lib/events/outbox.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { QueryRunner } from "../../../lib/store/prepared.ts";
import { approvalOf } from "../approvals/approval-message.ts";
import type { ApprovalStore } from "../approvals/approval-store.ts";
import type { ApprovalChanges } from "../approvals/changes.ts";
import type { HeldQuota } from "../approvals/held-quota.ts";
import { newApproval } from "../approvals/new-approval.ts";
import type { RequestStore } from "../approvals/request-store.ts";
import type { AuditLog, Listed } from "../audit/log.ts";
import { callEnded, type OutcomeStore } from "../audit/outcome-store.ts";
import { approvalRequested } from "../events.ts";
import { type GrantMinter, grantTemplate, limitedTemplate, type MintedGrant, type Release } from "../grants/mint.ts";
import { type RecordedWrites, RollBack } from "../recorded-writes.ts";
import type { PolicyDatabase } from "../tables.ts";
import { coverOf } from "./cover.ts";
import { decidedRecord } from "./decided-record.ts";
import type { DecisionStore } from "./decision-store.ts";
import { type DecisionHead, denialDecision, holdDecision, permitDecision, wholePermitDecision } from "./decisions.ts";
import { type NotHoldable, notHoldable } from "./holdable.ts";
import type { Judge, Judged } from "./judge.ts";
import { asksAboutWhole, decisionKey } from "./question.ts";
import { requestDigest } from "./request-digest.ts";

/** Decides about calls, and writes down what it decided. */
export interface Authorizer {
  /**
   * Decides about one call. Decision, record, approval and event are one transaction, and nothing is returned before it
   * is committed. The same question again returns the same decision, byte for byte; with another content under its call id
   * it throws CALL_ID_REUSED. A call that was kept for its device is asked about again with the number of the delivery, and
   * that is a new question, which the rules of today decide. Throws CALL_ENDED where the call has ended meanwhile,
   * INVALID_INPUT for arguments that are not canonical, and POLICY_UNAVAILABLE where it cannot be written down.
   */
  authorize(request: DecisionRequest): Promise<Decision>;
}

/** What deciding needs. */
export interface AuthorizerOptions {
  db: PolicyDatabase;
  writes: RecordedWrites;
  judge: Judge;
  decisions: DecisionStore;
  outcomes: Pick<OutcomeStore, "find">;
  approvals: ApprovalStore;
  requests: Pick<RequestStore, "keep">;
  heldQuota: HeldQuota;
  log: AuditLog;
  outbox: Outbox;
  minter: GrantMinter;
  changes: Pick<ApprovalChanges, "look">;
  now: () => number;
  newApprovalId: () => string;
}

/** The authorizer on policy's database. */
export function createAuthorizer(options: AuthorizerOptions): Authorizer {
  const { db, writes, decisions } = options;

  const write = async (judged: Judged, digest: string): Promise<Decision> => {
    const key = decisionKey(judged.whole.request);
    const prepared = await prepareWrite(options, judged);
    const written = await writes.write(async (trx) => {
      const made = await prepared(trx);
      const { decision, idx } = made;
      const bytes = toBinary(DecisionSchema, decision);
      const row = { call_id: key, digest, decision: bytes, idx };
      const isNew = await decisions.insert(trx, row, judged.whole.request.callId);
      if (!isNew) throw new RollBack("decided before, or ended");
      return made;
    });
    written.tell();
    return written.decision;
  };
  const decidedBefore = async (request: DecisionRequest, digest: string): Promise<Decision> => {
    const row = await decisions.find(db, decisionKey(request));
    if (row?.digest === digest) return fromBinary(DecisionSchema, row.decision);
    if (row === undefined) throw await endedBefore(options, request.callId);
    const message = "this call id was used for another request";
    throw fault(ErrorReason.CALL_ID_REUSED, { call_id: request.callId }, { message });
  };

  return {
    async authorize(request) {
      const judged = options.judge(request);
      const digest = requestDigest(judged.whole, judged.argsDigest);
      try {
        return await write(judged, digest);
      } catch (e: unknown) {
        if (e instanceof RollBack) return decidedBefore(request, digest);
        throw e;
      }
    },
  };
}

/**
 * Nothing follows a call's end. It may have been canceled at the moment that its device came back, or been ended by a
 * registry that took it over from the one that asks, and that was held up.
 */
async function endedBefore({ db, outcomes }: AuthorizerOptions, callId: string): Promise<Error> {
  const ended = await outcomes.find(db, callId);
  if (ended === undefined) throw new Error(`nothing was decided about the call ${callId}, and it has no end`);
  return callEnded(ended);
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
  switch (judged.judgment.effect) {
    case "allow":
      return preparePermit(options, judged);
    case "hold": {
      const release = await releaseOf(options, judged);
      if (release) return preparePermit(options, judged, release);
      return holdOrDeny(options, judged);
    }
    default:
      return writeDenial(options, judged);
  }
}

/** Holds the call, or denies it where no person could be shown it, or its principal has too much waiting for one. */
function holdOrDeny(options: AuthorizerOptions, judged: Judged): Write {
  return async (trx) => {
    const refused = notHoldable(judged) ?? (await options.heldQuota.over(trx, judged.whole));
    const write = refused
      ? writeDenial(options, refusedInstead(judged, refused), refused.metadata)
      : writeHold(options, judged);
    return write(trx);
  };
}

/** Who released what the rules hold, where an approval that is named covers it. */
async function releaseOf({ db, approvals, now }: AuthorizerOptions, judged: Judged): Promise<Release | undefined> {
  const { request } = judged.whole;
  if (request.approvalId === "" || asksAboutWhole(request)) return undefined;
  // Read outside the transaction: an approval that was given never changes again.
  return coverOf(await approvals.find(db, request.approvalId), judged, now());
}

async function preparePermit(options: AuthorizerOptions, judged: Judged, release?: Release): Promise<Write> {
  if (asksAboutWhole(judged.whole.request)) return writePermit(options, judged, undefined);
  const released = grantTemplate(judged.whole, judged.argsDigest);
  const template = release ? released : limitedTemplate(released, judged.judgment.maxRunMs);
  const minted = await options.minter.mint(template, judged.policy.grantTtlMs, release);
  return writePermit(options, judged, { ...minted, approvalId: release?.approvalId ?? "" });
}

/** @param minted undefined for a fan-out, whose calls ask for their own. */
function writePermit(
  { log, now }: AuthorizerOptions,
  judged: Judged,
  minted: (MintedGrant & { approvalId: string }) | undefined,
): Write {
  return async (trx) => {
    const { grantId = "", approvalId = "" } = minted ?? {};
    const facts = { ...recordFacts(judged), decision: "permit" as const, grantId, approvalId, nowMs: now() };
    const idx = await log.append(trx, decidedRecord(judged.whole, facts), listedOf(judged));
    const head = headOf(judged, idx);
    return { decision: minted ? permitDecision(head, minted) : wholePermitDecision(head), idx, tell: nothing };
  };
}

/** The judgment about a call that would be held, and that cannot wait for a person. */
function refusedInstead(judged: Judged, { reason, message }: NotHoldable): Judged {
  return { ...judged, judgment: { ...judged.judgment, effect: "deny", reason, message } };
}

function writeDenial(
  { log, now }: AuthorizerOptions,
  judged: Judged,
  metadata: Readonly<Record<string, string>> = {},
): Write {
  return async (trx) => {
    const facts = { ...recordFacts(judged), decision: "denial" as const, nowMs: now() };
    const idx = await log.append(trx, decidedRecord(judged.whole, facts), listedOf(judged));
    const { reason, message } = judged.judgment;
    return { decision: denialDecision(headOf(judged, idx), { reason, message, metadata }), idx, tell: nothing };
  };
}

function writeHold(options: AuthorizerOptions, judged: Judged): Write {
  const { log, approvals, requests, outbox, changes, now, newApprovalId } = options;
  return async (trx) => {
    const nowMs = now();
    const approvalId = newApprovalId();
    const record = decidedRecord(judged.whole, { ...recordFacts(judged), decision: "hold", approvalId, nowMs });
    const idx = await log.append(trx, record, listedOf(judged));
    const held = { ...newApproval(approvalId, { ...judged, nowMs }, record), change_idx: idx };
    const approval = approvalOf(await approvals.insert(trx, held));
    await requests.keep(trx, approvalId, judged.whole.request);
    if (approval.spec) await outbox.enqueue(trx, [approvalRequested(approvalId, approval.spec, nowMs)]);
    const expireMs = nowMs + judged.policy.approvalTtlMs;
    const decision = holdDecision(headOf(judged, idx), approvalId, expireMs, judged.judgment.message);
    return { decision, idx, tell: changes.look };
  };
}

function nothing(): void {}

/** The decision's own row is found by the call's id only where it is the first about the call. */
function listedOf({ whole }: Judged): Listed {
  return whole.request.delivery === 0 ? "elsewhere" : "here";
}

function recordFacts({ judgment, policy, argsDigest }: Judged) {
  return { judgment, policyVersion: policy.version, argsDigest };
}

function headOf({ judgment, policy }: Judged, auditIndex: number): DecisionHead {
  return { ruleIds: judgment.ruleIds, policyVersion: policy.version, auditIndex };
}
