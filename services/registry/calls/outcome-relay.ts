import { fromBinary } from "@bufbuild/protobuf";
import { type CallOutcome, CallOutcomeSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { PolicyLink } from "../policy-client/policy-link.ts";
import type { CallStore } from "./store.ts";

/** Brings the ends of calls into the audit log. */
export interface OutcomeRelay {
  /**
   * Sends an outcome that is in the store. One that does not get through is sent again after a while, or by the next
   * start. Nothing happens for one that is in flight.
   */
  send(callId: string, outcome: CallOutcome | Uint8Array): void;
  /** Resolves when the audit log has answered about every outcome that was sent. */
  drained(): Promise<void>;
}

export interface OutcomeRelayOptions {
  policy: PolicyLink;
  store: CallStore;
  logger: Logger;
}

/** How long outcomes are gathered, in milliseconds: those of one batch share one commit of the audit log. */
const GATHER_MS = 50;

/** Callers do not wait for the relay. */
export function createOutcomeRelay({ policy, store, logger }: OutcomeRelayOptions): OutcomeRelay {
  let gathered: { callId: string; outcome: CallOutcome | Uint8Array }[] = [];
  const inFlight = new Set<string>();
  let onDrained: (() => void) | undefined;

  const record = async (callId: string, outcome: CallOutcome | Uint8Array): Promise<void> => {
    try {
      const message = outcome instanceof Uint8Array ? fromBinary(CallOutcomeSchema, outcome) : outcome;
      store.outcomeRecorded(callId, await policy.recordOutcome(message));
    } catch (error: unknown) {
      logger.error({ err: error, call_id: callId }, "the audit log refused an outcome");
    }
    inFlight.delete(callId);
    if (inFlight.size === 0) onDrained?.();
  };
  const flush = () => {
    const batch = gathered;
    gathered = [];
    for (const { callId, outcome } of batch) void record(callId, outcome);
  };

  return {
    send(callId, outcome) {
      if (inFlight.has(callId)) return;
      inFlight.add(callId);
      if (gathered.push({ callId, outcome }) === 1) setTimeout(flush, GATHER_MS);
    },
    drained: () =>
      new Promise((resolve) => {
        onDrained = resolve;
        if (inFlight.size === 0) resolve();
      }),
  };
}
