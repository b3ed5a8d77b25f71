import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { AuditRecord } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import type { CallApproval } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type Decision, type DecisionRequest, DecisionSchema } from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { type Grant, GrantSchema } from "../../gen/ts/reeve/policy/v1/grant_pb.ts";
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
import type { OutcomeStore } from "./audit/outcome-store.ts";
import { callEnded } from "./audit/outcomes.ts";
import { type Denied, decidedRecord, type Outcome, type WrittenDecision, writeDecision } from "./decisions/decision.ts";
import { type DecidedRow, decisionRows } from "./decisions/decision-rows.ts";
import { type DecisionStore, decisionKey, requestDigest } from "./decisions/decision-store.ts";
import type { Evaluated, Evaluator } from "./evaluate/evaluate.ts";
import { isFanOut } from "./facts/decision-request.ts";
import { type GrantMinter, grantTemplate, withObligations, withPreview } from "./grants/mint.ts";
import { createPreviewFirst } from "./preview-first.ts";
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
  const previewFirst = createPreviewFirst(options);

  const rows = decisionRows(options.log, decisions);
  /** Undefined where there is a decision already, or the call has ended. */
  const write = async (evaluated: Evaluated, digest: string): Promise<Decision | undefined> => {
    const decided = await decide(options, evaluated);
    if (decided !== "hold") return writes.writeRow(rows, decidedRow(options, evaluated, digest, decided));
    const first = await previewFirst(evaluated, digest);
    if (first !== undefined) return first;
    const { request } = evaluated.call;
    const written = await writes.write(async (trx) => {
      const made = await holdOrDeny(options, trx, evaluated);
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
        return (await write(evaluated, digest)) ?? (await decidedBefore(request, digest));
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

/** What was decided before anything is written, and who released what the rules hold. */
interface Decided {
  outcome: Outcome;
  release?: CallApproval | undefined;
}

/** Signing a grant takes longer than a transaction should, so it is done before. A hold is made within one. */
async function decide(options: AuthorizerOptions, evaluated: Evaluated): Promise<Decided | "hold"> {
  const { evaluation } = evaluated;
  if (evaluation.effect === "allow") return permit(options, evaluated);
  if (evaluation.effect !== "hold") return { outcome: denial(evaluation) };
  const release = await releaseOf(options, evaluated);
  return release ? permit(options, evaluated, release) : "hold";
}

/** Holds the call, or denies it where no person could be shown it, or its principal has too much waiting for one. */
async function holdOrDeny(
  options: AuthorizerOptions,
  trx: QueryRunner,
  evaluated: Evaluated,
): Promise<WrittenDecision> {
  const refused = notHoldable(evaluated.call) ?? (await options.heldQuota.over(trx, evaluated.call));
  return refused ? record(options, trx, evaluated, { outcome: denial(refused) }) : hold(options, trx, evaluated);
}

/** An approval that covers a call, and what its own grant was to be made from. */
interface Release {
  approval: CallApproval;
  template: Grant;
}

/** Who released what the rules hold, where the named approval covers it. */
async function releaseOf(
  { db, approvals, now }: AuthorizerOptions,
  evaluated: Evaluated,
): Promise<Release | undefined> {
  const { request } = evaluated.call;
  if (request.approvalId === "" || isFanOut(request)) return undefined;
  // Read outside the transaction: an approval that was given never changes again.
  const row = await approvals.find(db, request.approvalId);
  const approval = coveredBy(row, evaluated, now());
  return row && approval && { approval, template: fromBinary(GrantSchema, row.template) };
}

async function permit(options: AuthorizerOptions, evaluated: Evaluated, release?: Release): Promise<Decided> {
  const { call, evaluation, policy } = evaluated;
  if (isFanOut(call.request)) return { outcome: { kind: "permit", minted: undefined } };
  const template = grantTemplate(call);
  const limited = release
    ? withPreview(template, release.template)
    : withObligations(template, evaluation.obligations, call.command);
  const minted = await options.minter.mint(limited, policy.grantTtlMs, release?.approval);
  return { outcome: { kind: "permit", minted }, release: release?.approval };
}

function denial({ reason, message, metadata = {} }: Denied): Outcome {
  return { kind: "denial", reason, message, metadata };
}

async function hold(options: AuthorizerOptions, trx: QueryRunner, evaluated: Evaluated): Promise<WrittenDecision> {
  const { approvals, requests, outbox, now, newApprovalId } = options;
  const { call, evaluation, policy } = evaluated;
  const nowMs = now();
  const approvalId = newApprovalId();
  const expireMs = nowMs + policy.approvalTtlMs;
  const outcome: Outcome = { kind: "hold", approvalId, expireMs, message: evaluation.message };
  const written = await record(options, trx, evaluated, { outcome });
  const held = { ...newApproval(approvalId, { ...evaluated, nowMs }, written.record), change_idx: written.idx };
  const approval = approvalOf(await approvals.insert(trx, held));
  await requests.keep(trx, approvalId, call.request);
  if (approval.spec) await outbox.enqueue(trx, [approvalRequested(approvalId, approval.spec, nowMs)]);
  return written;
}

/** Writes the decision's record, and returns both. */
async function record(
  options: AuthorizerOptions,
  trx: QueryRunner,
  evaluated: Evaluated,
  decided: Decided,
): Promise<WrittenDecision & { record: AuditRecord }> {
  const toWrite = recordOf(options, evaluated, decided);
  return { ...(await writeDecision(options.log, trx, toWrite)), record: toWrite.record };
}

function decidedRow(options: AuthorizerOptions, evaluated: Evaluated, digest: string, decided: Decided): DecidedRow {
  const { request } = evaluated.call;
  return { callId: request.callId, key: decisionKey(request), digest, ...recordOf(options, evaluated, decided) };
}

/** A decision's record, and what the decision itself says. */
function recordOf(
  { now }: AuthorizerOptions,
  { call, evaluation, policy }: Evaluated,
  { outcome, release }: Decided,
): Pick<DecidedRow, "record" | "listed" | "head" | "outcome"> {
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
  return { record: message, listed, head: { ...head, approval: release }, outcome };
}
