import type { CallOutcome } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { PolicyLink } from "../policy-client/policy-link.ts";
import type { CallStore } from "./store.ts";

/** Brings the ends of calls into the audit log. */
export interface OutcomeRelay {
  /**
   * Sends an outcome that is in the store. One that does not get through is sent again by whoever looks for those, or by
   * the next start. Nothing happens for one that is on its way.
   */
  send(outcome: CallOutcome): void;
  /** Resolves when the audit log has answered about every outcome that was sent. */
  drained(): Promise<void>;
}

/** What relaying rests on. */
export interface OutcomeRelayOptions {
  policy: PolicyLink;
  store: CallStore;
  logger: Logger;
}

/** How long outcomes are gathered, in milliseconds: those of one batch share one commit of the audit log. */
const GATHER_MS = 50;

/** A relay that nobody waits for: callers have their answers already. */
export function createOutcomeRelay({ policy, store, logger }: OutcomeRelayOptions): OutcomeRelay {
  let gathered: CallOutcome[] = [];
  const onTheirWay = new Set<string>();
  let onDrained: (() => void) | undefined;

  const record = async (outcome: CallOutcome): Promise<void> => {
    const { callId } = outcome;
    try {
      store.outcomeRecorded(callId, await policy.recordOutcome(outcome));
    } catch (error: unknown) {
      logger.error({ err: error, call_id: callId }, "the audit log refused an outcome");
    }
    onTheirWay.delete(callId);
    if (onTheirWay.size === 0) onDrained?.();
  };
  const flush = () => {
    const batch = gathered;
    gathered = [];
    for (const outcome of batch) void record(outcome);
  };

  return {
    send(outcome) {
      if (onTheirWay.has(outcome.callId)) return;
      onTheirWay.add(outcome.callId);
      if (gathered.push(outcome) === 1) setTimeout(flush, GATHER_MS);
    },
    drained: () =>
      new Promise((resolve) => {
        onDrained = resolve;
        if (onTheirWay.size === 0) resolve();
      }),
  };
}
