import { registrySettings } from "../../../gen/settings/settings.ts";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { quotaFactor } from "../../../lib/auth/quota-factor.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { GovernedCall } from "./governed-call.ts";
import { isEnd, isQueueable } from "./lifecycle.ts";

/** How much one agent may have open at this replica. Principals with the role operator may have eight times as much. */
export interface QuotaLimits {
  /** Calls that are decided on or run, those of fan-outs left out. Default 128. */
  calls: number;
  /** Calls of fan-outs that are decided on or run. Default 1000, the most devices of one. */
  fanOutCalls: number;
  /** Calls that may wait for their device and have not ended. Default 100. */
  queuedCalls: number;
  /** Bytes of the arguments of those. Default 4 MiB. */
  queuedBytes: number;
}

/** What an agent may have open where the configuration states nothing else. */
export const DEFAULT_QUOTAS: QuotaLimits = {
  calls: registrySettings.agentCalls.default,
  fanOutCalls: registrySettings.agentFanOutCalls.default,
  queuedCalls: registrySettings.agentQueuedCalls.default,
  queuedBytes: registrySettings.agentQueuedBytes.default,
};

/** One open call in the counts. */
export interface QuotaTicket {
  /** The call is in another state now. An end takes it out of the counts. */
  moved(state: CallState): void;
  /** It is open here no more. May be said twice. */
  left(): void;
}

/** Counts what principals have open at this replica. Each step takes the same time, however much there is. */
export interface Quotas {
  /** Counts a new call. Throws QUOTA_EXCEEDED where its principal may open no more; then nothing was counted. */
  open(principal: Principal, call: GovernedCall, bytes: number): QuotaTicket;
  /** Counts a call that was let in before, as after a restart. */
  reopen(call: GovernedCall, bytes: number): QuotaTicket;
}

/** What one principal has open: `open` are all of its calls, so that those who have none are forgotten. */
type Counts = QuotaLimits & { open: number };

const NAMES: Readonly<Record<keyof QuotaLimits, string>> = {
  calls: "calls",
  fanOutCalls: "fan_out_calls",
  queuedCalls: "queued_calls",
  queuedBytes: "queued_bytes",
};

const ADVICE: Readonly<Record<keyof QuotaLimits, string>> = {
  calls: "wait for some of its calls to end",
  fanOutCalls: "wait for its fan-outs to end, or choose fewer devices",
  queuedCalls: "cancel some of those that wait for their device",
  queuedBytes: "cancel some of those that wait for their device",
};

/** @param onRefused is notified of each refusal, by the quota's name. */
export function createQuotas(
  limits: QuotaLimits = DEFAULT_QUOTAS,
  onRefused: (quota: string) => void = () => undefined,
): Quotas {
  const all = new Map<string, Counts>();

  const check = (principal: Principal, key: keyof QuotaLimits, amount: number): void => {
    const limit = limits[key] * quotaFactor(principal);
    if ((all.get(principal.id)?.[key] ?? 0) + amount <= limit) return;
    onRefused(NAMES[key]);
    throw exceeded(key, limit);
  };
  const count = (call: GovernedCall, bytes: number): QuotaTicket => {
    const { principalId } = call.spec;
    const counts = all.get(principalId) ?? { open: 0, calls: 0, fanOutCalls: 0, queuedCalls: 0, queuedBytes: 0 };
    all.set(principalId, counts);
    const queueable = isQueueable(call) ? 1 : 0;
    const key = activeKey(call);
    let active = isWaiting(call.status.state) ? 0 : 1;
    let isOpen = true;
    const add = (sign: 1 | -1): void => {
      counts.open += sign;
      counts[key] += sign * active;
      counts.queuedCalls += sign * queueable;
      counts.queuedBytes += sign * queueable * bytes;
    };
    add(1);
    const left = (): void => {
      if (!isOpen) return;
      isOpen = false;
      add(-1);
      if (counts.open === 0) all.delete(principalId);
    };
    return {
      left,
      moved(state) {
        if (isEnd(state)) return left();
        const now = isWaiting(state) ? 0 : 1;
        if (!isOpen || now === active) return;
        counts[key] += now - active;
        active = now;
      },
    };
  };

  return {
    open(principal, call, bytes) {
      check(principal, activeKey(call), 1);
      if (isQueueable(call)) {
        check(principal, "queuedCalls", 1);
        check(principal, "queuedBytes", bytes);
      }
      return count(call, bytes);
    },
    reopen: count,
  };
}

/** A call that waits for a person or its device takes nothing from those that run. */
function isWaiting(state: CallState): boolean {
  return state === CallState.HELD || state === CallState.QUEUED;
}

function activeKey({ spec }: GovernedCall): "calls" | "fanOutCalls" {
  return spec.fanOutId === "" ? "calls" : "fanOutCalls";
}

function exceeded(key: keyof QuotaLimits, limit: number): Error {
  const message = `one principal may have ${NAMES[key]} of ${limit} open at a registry; ${ADVICE[key]}`;
  return fault(ErrorReason.QUOTA_EXCEEDED, { quota: NAMES[key], limit: String(limit) }, { message });
}
