import { create, toBinary } from "@bufbuild/protobuf";
import { durationFromMs, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import { type CallOutcome, CallOutcomeSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { CallState, type CallStatus } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { cleanJson, cleanOutput } from "../../../lib/sanitize/sanitize.ts";
import { canonicalJson, sha256Hex } from "../../../lib/sign/canonical.ts";
import { callEndedEvent } from "./call-ended.ts";
import type { CallEnd } from "./end.ts";
import { explainEnd } from "./explain-end.ts";
import type { GovernedCall } from "./governed-call.ts";
import { stepOf } from "./lifecycle.ts";
import type { LiveCall } from "./live-call.ts";
import type { CallStore } from "./store.ts";

/** Ends calls: sanitizes what came back, keeps it, and notifies the watchers. */
export interface Finisher {
  /**
   * Ends a call. Resolves when the end is on disk and the watchers know. Where another replica has claimed the call
   * meanwhile, the end that it finds is the one that counts, and is reported.
   */
  finish(live: LiveCall, end: CallEnd): Promise<void>;
  /** Another replica owns the call now: reports to the watchers the end that it finds. */
  overtaken(live: LiveCall): Promise<void>;
}

/** Dependencies of ending a call. */
export interface FinishPorts {
  store: CallStore;
  /** DEVICE_LOCKED, for a device that is locked. */
  lockOf(deviceId: string): Promise<ConnectError | undefined>;
  now(): number;
  /** Whether an event about it would reach anybody. */
  hasSubscribers(): boolean;
  /** The end is on disk: its outcome can go to the audit log, its event to the bus. */
  onFinished(call: GovernedCall, outcome: CallOutcome | undefined): void;
  /** Resolves with the stored end of a call that another replica owns. */
  endElsewhere(live: LiveCall): Promise<GovernedCall>;
}

/** Denials and refusals by humans are on record already: policy wrote them when it decided. */
const RECORDED_BY_POLICY = new Set<CallState>([CallState.DENIED, CallState.EXPIRED]);

/** A call is denied here, too, when the token that asked for it is gone by the time that its device is back. */
function isRecordedByPolicy({ state, error }: CallEnd): boolean {
  return RECORDED_BY_POLICY.has(state) && error?.reason !== ErrorReason.TOKEN_REFUSED;
}

export function createFinisher(ports: FinishPorts): Finisher {
  const overtaken = async (live: LiveCall): Promise<void> => {
    const stored = await ports.endElsewhere(live);
    live.replace(stored);
  };
  return {
    async finish(live, found) {
      const end = await explainEnd(found, live, ports.lockOf);
      const { state } = stepOf(live.call, { end: end.state });
      const now = ports.now();
      // A copy: it counts only when it is kept.
      const status = { ...live.call.status, state, endTime: timestampFromMs(now) };
      const call: GovernedCall = { ...live.call, status };
      const deliveredDigest = deliver(status, end);
      const outcome = isRecordedByPolicy(end) ? undefined : outcomeOf(call, end, deliveredDigest, now);
      const events = ports.hasSubscribers() ? [callEndedEvent(call, end.state, now)] : [];
      const bytes = outcome && toBinary(CallOutcomeSchema, outcome);
      if (!(await ports.store.finish(call, bytes, events))) return overtaken(live);
      live.advance({ end: end.state }, status);
      ports.onFinished(live.call, outcome);
    },
    overtaken,
  };
}

/** Puts the sanitized output and error into the call's status; returns the digest of what the caller gets. */
function deliver(status: CallStatus, end: CallEnd): string {
  if (end.error !== undefined) {
    status.error = end.error;
    status.errorMessage = cleanOutput(end.message).text;
  }
  if (end.receipt !== undefined) status.receipt = end.receipt;
  // The device's word counts: a registry that died in between may not have kept the grant, or was given a newer one.
  if (end.grantId !== "") status.grantId = end.grantId;
  status.sandbox = end.sandbox;
  if (end.output === undefined) return "";
  const cleaned = cleanJson(end.output);
  status.output = cleaned.value;
  status.outputSanitized = cleaned.changed;
  return cleaned.changed ? sha256Hex(canonicalJson(cleaned.value)) : end.outputDigest;
}

function outcomeOf(call: GovernedCall, end: CallEnd, deliveredDigest: string, now: number): CallOutcome {
  const received = call.createTime === undefined ? now : timestampMs(call.createTime);
  return create(CallOutcomeSchema, {
    callId: call.id,
    state: end.state,
    reason: end.error?.reason ?? ErrorReason.UNSPECIFIED,
    grantId: call.status.grantId,
    deviceId: call.spec.deviceId,
    tool: call.spec.tool,
    argsDigest: call.spec.argsDigest,
    outputDigest: end.outputDigest,
    deliveredDigest,
    outputBytes: end.outputBytes,
    receiptDigest: end.receipt === undefined ? "" : sha256Hex(end.receipt.statement),
    duration: durationFromMs(Math.max(0, now - received)),
    endTime: timestampFromMs(now),
    sandbox: end.sandbox,
  });
}
