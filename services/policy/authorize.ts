import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { AuditRecord } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import type { CallApproval } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type Decision, type DecisionRequest, DecisionSchema } from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { Outbox } from "../../lib/events/outbox.ts";
import { fault } from "../../lib/fault/fault.ts";
import type { QueryRunner } from "../../lib/store/prepared.ts";
import { approvalOf } from "./approvals/approval-message.ts";
import type { ApprovalStore } from "./approvals/approval-store.ts";
import type { ChangeFeed } from "./approvals/change-feed.ts";
import { approvalRequested } from "./approvals/events.ts";
import type { HeldQuota } from "./approvals/held-quota.ts";
import type { HeldRequests } from "./approvals/held-requests.ts";
import { notHoldable } from "./approvals/holdable.ts";
import { newApproval } from "./approvals/new-approval.ts";
import { coveredBy } from "./approvals/validity.ts";
import type { AuditLog, Listed } from "./audit/log.ts";
import { callEnded, type OutcomeStore } from "./audit/outcomes.ts";
import { type Denied, decidedRecord, type Outcome, type WrittenDecision, writeDecision } from "./decisions/decision.ts";
import { type DecisionStore, decisionKey, requestDigest } from "./decisions/decision-store.ts";
import type { Evaluated, Evaluator } from "./evaluate/evaluate.ts";
import { isFanOut } from "./facts/decision-request.ts";
import { type GrantMinter, grantTemplate, withObligations } from "./grants/mint.ts";
import { type RecordedWrites, RollBack } from "./storage/recorded-writes.ts";
import type { PolicyDatabase } from "./storage/tables.ts";

/** Decides about calls, and writes down what it decided. */
export interface Authorizer {
  /**
   * Decides about one call. Decision, record, approval and event are one transaction, and nothing is returned before it
   * is committed. The same request again returns the same decision, byte for byte; with another content under its call id
   * it throws CALL_ID_REUSED. A queued call is asked about again with the number of the delivery, and that is a new
   * request, which the active policy decides. Throws CALL_ENDED where the call has ended meanwhile, INVALID_INPUT for
   * arguments that are not canonical, and POLICY_UNAVAILABLE where it cannot be written down.
   */
  authorize(request: DecisionRequest): Promise<Decision>;
}

export interface AuthorizerOptions {
  db: PolicyDatabase;
  writes: RecordedWrites;
  evaluate: Evaluator;
  decisions: DecisionStore;
  outcomes: Pick<OutcomeStore, "find">;
  approvals: ApprovalStore;
  requests: Pick<HeldRequests, "keep">;
  heldQuota: HeldQuota;
  log: AuditLog;
  outbox: Outbox;
  minter: GrantMinter;
  changes: Pick<ChangeFeed, "wake">;
  now: () => number;
  newApprovalId: () => string;
}

/** The authorizer on policy's database. */
export function createAuthorizer(options: AuthorizerOptions): Authorizer {
  const { db, writes, decisions } = options;

  const write = async (evaluated: Evaluated, digest: string): Promise<Decision> => {
    const { request } = evaluated.call;
    const prepared = await prepareWrite(options, evaluated);
    const written = await writes.write(async (trx) => {
      const made = await prepared(trx);
      const bytes = toBinary(DecisionSchema, made.decision);
      const row = { call_id: decisionKey(request), digest, decision: bytes, idx: made.idx };
      const isNew = await decisions.insert(trx, row, request.callId);
      if (!isNew) throw new RollBack("decided before, or ended");
      return made;
    });
    if (written.decision.outcome.case === "hold") options.changes.wake();
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
      const evaluated = options.evaluate(request);
      const digest = requestDigest(evaluated.call);
      try {
        return await write(evaluated, digest);
      } catch (e: unknown) {
        if (e instanceof RollBack) return decidedBefore(request, digest);
        throw e;
      }
    },
  };
}

/**
 * Nothing follows a call's end. It may have been canceled at the moment that its device came back, or been ended by a
 * registry that claimed it from the one that asks, and that was held up.
 */
async function endedBefore({ db, outcomes }: AuthorizerOptions, callId: string): Promise<Error> {
  const ended = await outcomes.find(db, callId);
  if (ended === undefined) throw new Error(`nothing was decided about the call ${callId}, and it has no end`);
  return callEnded(ended);
}

type Write = (trx: QueryRunner) => Promise<WrittenDecision>;

/** Signing a grant takes longer than a transaction should, so it is done before. */
async function prepareWrite(options: AuthorizerOptions, evaluated: Evaluated): Promise<Write> {
  switch (evaluated.evaluation.effect) {
    case "allow":
      return preparePermit(options, evaluated);
    case "hold": {
      const release = await releaseOf(options, evaluated);
      return release ? preparePermit(options, evaluated, release) : holdOrDeny(options, evaluated);
    }
    default:
      return writeDenial(options, evaluated, evaluated.evaluation);
  }
}

/** Holds the call, or denies it where no person could be shown it, or its principal has too much waiting for one. */
function holdOrDeny(options: AuthorizerOptions, evaluated: Evaluated): Write {
  return async (trx) => {
    const refused = notHoldable(evaluated.call) ?? (await options.heldQuota.over(trx, evaluated.call));
    const write = refused ? writeDenial(options, evaluated, refused) : writeHold(options, evaluated);
    return write(trx);
  };
}

/** Who released what the rules hold, where the named approval covers it. */
async function releaseOf(
  { db, approvals, now }: AuthorizerOptions,
  evaluated: Evaluated,
): Promise<CallApproval | undefined> {
  const { request } = evaluated.call;
  if (request.approvalId === "" || isFanOut(request)) return undefined;
  // Read outside the transaction: an approval that was given never changes again.
  return coveredBy(await approvals.find(db, request.approvalId), evaluated, now());
}

async function preparePermit(options: AuthorizerOptions, evaluated: Evaluated, release?: CallApproval): Promise<Write> {
  const { call, evaluation, policy } = evaluated;
  if (isFanOut(call.request)) return (trx) => record(options, trx, evaluated, { kind: "permit", minted: undefined });
  const template = grantTemplate(call);
  const limited = release ? template : withObligations(template, evaluation.obligations);
  const minted = await options.minter.mint(limited, policy.grantTtlMs, release);
  return (trx) => record(options, trx, evaluated, { kind: "permit", minted }, release);
}

function writeDenial(options: AuthorizerOptions, evaluated: Evaluated, denied: Denied): Write {
  const { reason, message, metadata = {} } = denied;
  return (trx) => record(options, trx, evaluated, { kind: "denial", reason, message, metadata });
}

function writeHold(options: AuthorizerOptions, evaluated: Evaluated): Write {
  const { approvals, requests, outbox, now, newApprovalId } = options;
  const { call, evaluation, policy } = evaluated;
  return async (trx) => {
    const nowMs = now();
    const approvalId = newApprovalId();
    const expireMs = nowMs + policy.approvalTtlMs;
    const outcome: Outcome = { kind: "hold", approvalId, expireMs, message: evaluation.message };
    const written = await record(options, trx, evaluated, outcome);
    const held = { ...newApproval(approvalId, { ...evaluated, nowMs }, written.record), change_idx: written.idx };
    const approval = approvalOf(await approvals.insert(trx, held));
    await requests.keep(trx, approvalId, call.request);
    if (approval.spec) await outbox.enqueue(trx, [approvalRequested(approvalId, approval.spec, nowMs)]);
    return written;
  };
}

/** Writes the decision's record, and returns both. */
async function record(
  { log, now }: AuthorizerOptions,
  trx: QueryRunner,
  { call, evaluation, policy }: Evaluated,
  outcome: Outcome,
  release?: CallApproval,
): Promise<WrittenDecision & { record: AuditRecord }> {
  const head = { ruleIds: evaluation.ruleIds, policyVersion: policy.version };
  const approvalId = outcome.kind === "hold" ? outcome.approvalId : release?.id;
  const grantId = outcome.kind === "permit" ? (outcome.minted?.grantId ?? "") : "";
  const reason = outcome.kind === "denial" ? outcome.reason : ErrorReason.UNSPECIFIED;
  const message = decidedRecord(call, {
    ...head,
    kind: outcome.kind,
    reason,
    grantId,
    ...(approvalId && { approvalId }),
    nowMs: now(),
  });
  // The decision's own row is found by the call's id only where it is the first about the call.
  const listed: Listed = call.request.delivery === 0 ? "elsewhere" : "here";
  const written = await writeDecision(log, trx, {
    record: message,
    listed,
    head: { ...head, approval: release },
    outcome,
  });
  return { ...written, record: message };
}
