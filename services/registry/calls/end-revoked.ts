import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { TokenStatus } from "../../../lib/auth/token-status.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { LiveCall } from "./live-call.ts";
import type { TokenStatuses } from "./token-statuses.ts";

/** What ending calls of revoked tokens depends on. */
export interface EndRevokedOptions {
  /** The calls that this replica owns. */
  running(): Iterable<LiveCall>;
  tokenStatuses: TokenStatuses;
  /** Receives what kept the tokens from being looked at; what runs goes on meanwhile. */
  onError(error: unknown): void;
  /** How often to look, in milliseconds. Default 500. */
  everyMs?: number;
}

/**
 * Cancels what runs or is held for tokens that were revoked, from time to time, until the result is called. A token that has
 * expired asks for nothing new, but what it has asked for goes on; a queued call is denied when its device is back.
 */
export function endCallsOfRevoked({ running, tokenStatuses, onError, everyMs = 500 }: EndRevokedOptions): () => void {
  let isLooking = false;
  const look = async (): Promise<void> => {
    const known = new Map<string, TokenStatus>();
    for (const live of [...running()]) {
      const { principalId } = live.call.spec;
      if (live.call.status.state === CallState.QUEUED || live.canceled.signal.aborted) continue;
      const status = known.get(principalId) ?? (await tokenStatuses(principalId));
      known.set(principalId, status);
      if (!status.valid && status.why === "revoked") live.canceled.abort(tokenRevoked());
    }
  };
  const timer = setInterval(() => {
    if (isLooking) return;
    isLooking = true;
    look()
      .catch(onError)
      .finally(() => {
        isLooking = false;
      });
  }, everyMs);
  timer.unref();
  return () => clearInterval(timer);
}

function tokenRevoked(): Error {
  const message = "the token that asked for this was revoked";
  return fault(ErrorReason.TOKEN_REFUSED, { why: "revoked" }, { message });
}
