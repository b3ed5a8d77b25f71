import type { CompleteCall } from "../../client/complete-call.ts";
import type { AuditRecord as LogRecord } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import { CallState, DecisionKind } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { reasonName } from "../../lib/fault/fault.ts";
import { isEnd } from "../../services/registry/calls/lifecycle.ts";
import { endOf, stateName } from "../../services/registry/calls/state.ts";
import type { LedgerRow } from "./evidence.ts";
import type { PlannedCall } from "./planned-calls.ts";

/** All that is known about one call in the end, from everybody who knows something. */
export interface Evidence {
  planned: PlannedCall;
  /** The end that its caller was given. */
  reported: CompleteCall | undefined;
  /** How each registry shows it. */
  shown: readonly (CompleteCall | undefined)[];
  /** How often it ran, by its own witness. */
  marks: number;
  /** What its device has in its ledger. */
  ledger: LedgerRow | undefined;
  /** The audit log's records. */
  records: readonly LogRecord[];
}

/** Ends that policy writes down itself, when it decides. */
const BY_POLICY = new Set<CallState>([CallState.DENIED, CallState.EXPIRED]);

/** What is not true about a call, in words; empty where all that was said of it holds. */
export function lies(evidence: Evidence): string[] {
  const { planned, reported, shown, marks } = evidence;
  const [call] = shown;
  if (call === undefined) return [`${planned.id} (${planned.kind}) is lost: the registry does not know it`];
  const what = `${planned.id} (${planned.kind}, ${planned.way}) is ${describeEnd(call)}, ran ${marks} times`;
  const found: string[] = [];
  const must = (holds: boolean, words: string) => {
    if (!holds) found.push(`${what}: ${words}`);
  };
  must(isEnd(call.status.state), "it has no end");
  must(marks <= 1, "it was executed twice");
  must(reported !== undefined, "its caller was given no end");
  for (const other of [reported, ...shown.slice(1)]) {
    if (other !== undefined) must(isSame(other, call), `another caller was given ${describeEnd(other)}`);
  }
  if (call.status.state === CallState.SUCCEEDED) must(marks === 1, "it succeeded and left no mark");
  if (ranNothing(call)) must(marks === 0, "it says that nothing ran");
  must(planned.answer !== "no" || marks === 0, "a human said no");
  return [...found, ...besideLedger(evidence, call).map(withWhat), ...besideLog(evidence, call).map(withWhat)];

  function withWhat(words: string): string {
    return `${what}: ${words}`;
  }
}

/** How a call ended, in words. */
export function describeEnd({ status: { state, error } }: CompleteCall): string {
  return error === undefined ? stateName(state) : `${stateName(state)}/${reasonName(error.reason)}`;
}

/** True where the device knows the end of a call and the registry does not: it gave up waiting, and says so. */
export function isGivenUp({ ledger }: Pick<Evidence, "ledger">, call: CompleteCall): boolean {
  return (
    call.status.state === CallState.UNKNOWN &&
    ledger?.finished !== undefined &&
    endOf(ledger.finished.outcome) !== call.status.state
  );
}

function isSame(one: CompleteCall, other: CompleteCall): boolean {
  return (
    one.status.state === other.status.state &&
    one.status.grantId === other.status.grantId &&
    one.status.error?.reason === other.status.error?.reason
  );
}

/** Ends that say that the tool was not started. */
function ranNothing({ status: { state, error } }: CompleteCall): boolean {
  if (BY_POLICY.has(state)) return true;
  return state === CallState.FAILED && error?.reason !== ErrorReason.TOOL_FAILED;
}

function besideLedger(evidence: Evidence, call: CompleteCall): string[] {
  const { ledger, marks } = evidence;
  if (ledger === undefined) {
    if (marks > 0) return ["it is not in the device's ledger"];
    return call.status.receipt === undefined ? [] : ["it has a receipt, and is not in the device's ledger"];
  }
  const { state, finished } = ledger;
  if (finished === undefined) return ["the device's ledger has no end of it"];
  const said = `the device's ledger says ${state}, outcome ${finished.outcome}`;
  if (call.status.receipt === undefined) {
    // Without a receipt the registry may say only that it does not know, or that nothing ran.
    const isHonest = call.status.state === CallState.UNKNOWN || state === "not_started" || state === "refused";
    return isHonest ? [] : [said];
  }
  const isTheReceipt = Buffer.from(call.status.receipt.statement).equals(
    finished.receipt?.statement ?? new Uint8Array(),
  );
  return isTheReceipt && endOf(finished.outcome) === call.status.state ? [] : [said];
}

function besideLog({ records }: Evidence, call: CompleteCall): string[] {
  const found: string[] = [];
  const outcomes = records.flatMap(({ event }) => (event.case === "outcome" ? [event.value] : []));
  const decided = records.flatMap(({ event }) => (event.case === "decided" ? [event.value] : []));
  const [outcome] = outcomes;
  const wanted = BY_POLICY.has(call.status.state) ? 0 : 1;
  if (outcomes.length !== wanted) found.push(`the log has ${outcomes.length} outcomes`);
  if (outcome !== undefined && (outcome.state !== call.status.state || outcome.grantId !== call.status.grantId)) {
    found.push(
      `the log says ${stateName(outcome.state)} by the grant ${outcome.grantId}, the call ${call.status.grantId}`,
    );
  }
  const permits = decided.filter(({ decision }) => decision === DecisionKind.PERMIT);
  // A call that was kept for its device is asked about again; the grant of a held one that a human has allowed is renewed
  // where it has run out before its call could be sent.
  const isAskedAgain =
    call.spec.queueExpireTime !== undefined || decided.some(({ decision }) => decision === DecisionKind.HOLD);
  if (!isAskedAgain && decided.length > 1) found.push(`the log has ${decided.length} decisions`);
  if (call.status.grantId !== "" && !permits.some(({ grantId }) => grantId === call.status.grantId)) {
    found.push("the log has no permit for its grant");
  }
  return found;
}
