import { ApprovalState } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import type { AuditRecord, CallOutcome, Decided } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import { CallState, CallStateSchema, DecisionKind } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import type { Finding, OpenPermit } from "./finding.ts";

/** Checks that what the records say happened in an order in which it may happen. */
export interface MeaningCheck {
  /** Takes the next record; returns what is wrong. */
  take(index: number, record: AuditRecord): Finding[];
  /** Calls that were permitted and whose end is not in the log, oldest first. */
  open(): OpenPermit[];
}

interface Permit extends OpenPermit {
  argsDigest: string;
}

/** States in which the tool was running, or may have been. */
const RAN = new Set<CallState>([CallState.SUCCEEDED, CallState.TIMED_OUT, CallState.UNKNOWN]);

/** A check over the records in the order of the log. Keeps one line in memory for each permit. */
export function createMeaningCheck(): MeaningCheck {
  const permits = new Map<string, Permit>();
  const approved = new Map<string, string>();
  const openByCall = new Map<string, Permit>();

  const takeDecided = (index: number, callId: string, decided: Decided): Finding[] => {
    if (decided.decision !== DecisionKind.PERMIT) {
      // A call that was kept for its device is asked about again: what it was permitted before does not stand open.
      openByCall.delete(callId);
      return [];
    }
    const { grantId, argsDigest, approvalId } = decided;
    const findings: Finding[] = [];
    const earlier = grantId === "" ? undefined : permits.get(grantId);
    if (earlier) {
      const message = `record ${index} permits with the grant ${grantId}, as record ${earlier.index} does`;
      findings.push({ kind: "duplicate_grant", index, message });
    }
    if (approvalId !== "" && approved.get(approvalId) !== argsDigest) {
      const message = `record ${index} permits by ${approvalId}, which was not approved for these arguments`;
      findings.push({ kind: "unapproved", index, message });
    }
    // A fan-out as a whole: each of its calls has a permit, and a grant, of its own.
    if (grantId === "") return findings;
    const permit = { index, callId, grantId, argsDigest };
    permits.set(grantId, permit);
    openByCall.set(callId, permit);
    return findings;
  };

  const takeOutcome = (index: number, outcome: CallOutcome): Finding[] => {
    openByCall.delete(outcome.callId);
    if (outcome.grantId === "" && !RAN.has(outcome.state)) return [];
    const permit = permits.get(outcome.grantId);
    if (permit && permit.callId === outcome.callId && permit.argsDigest === outcome.argsDigest) return [];
    const why = permit ? "the permit is for another call or other arguments" : "nothing permitted it";
    const message = `record ${index} says that the call ${outcome.callId} ended as ${CallStateSchema.value[outcome.state]?.localName}, but ${why}`;
    return [{ kind: "orphan", index, message }];
  };

  return {
    take(index, { callId, event }) {
      switch (event.case) {
        case "decided":
          return takeDecided(index, callId, event.value);
        case "outcome":
          return takeOutcome(index, event.value);
        case "approvalDecided":
          if (event.value.state === ApprovalState.APPROVED)
            approved.set(event.value.approvalId, event.value.argsDigest);
          return [];
        default:
          return [];
      }
    },
    open: () => [...openByCall.values()].map(({ index, callId, grantId }) => ({ index, callId, grantId })),
  };
}
