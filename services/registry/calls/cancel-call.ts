import { setTimeout as sleep } from "node:timers/promises";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { type Principal, requireRole } from "../../../lib/auth/principal.ts";
import type { Calls } from "./calls.ts";
import type { GovernedCall } from "./governed-call.ts";
import { interrupted } from "./interrupted.ts";

/** How long to wait for the end of a canceled call, in milliseconds. */
const CANCEL_WAIT_MS = 5000;

/**
 * Cancels a call, its own or as an operator any, and returns it when it has ended, or as it stands after 5 seconds. One that has ended stays as it is.
 * Rejects with ROLE_REQUIRED where it is another's, and with INTERRUPTED where the call is interrupted meanwhile.
 */
export async function cancelCall(calls: Calls, callId: string, principal: Principal): Promise<GovernedCall> {
  const found = await calls.find(callId, principal);
  // Auditors see the calls of others, and change nothing about them, even where they may call tools themselves.
  if (found.call.spec.principalId !== principal.id) requireRole(principal, [Role.OPERATOR]);
  if (!("canceled" in found)) return found.call;
  found.canceled.abort();
  const waited = new AbortController();
  const timeout = sleep(CANCEL_WAIT_MS, undefined, { signal: waited.signal }).catch(() => undefined);
  const ended = found.ended.catch((cause: unknown): never => {
    throw interrupted(callId, cause);
  });
  try {
    await Promise.race([ended, timeout]);
  } finally {
    waited.abort();
  }
  return found.call;
}
