import { setTimeout as sleep } from "node:timers/promises";
import { Source } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { type Call, CallState } from "../../../gen/ts/reeve/registry/v1/call_pb.ts";
import type { CallToolRequest } from "../../../gen/ts/reeve/registry/v1/registry_service_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import type { Calls, EndedCall } from "./calls.ts";
import type { LiveCall } from "./live-call.ts";
import type { CallWish } from "./receive.ts";

/** How long a caller waits for a human by default, in milliseconds. */
const DEFAULT_WAIT_MS = 60_000;

/** What a request asks for. */
export function wishOf(request: CallToolRequest, principal: Principal, door: Source): CallWish {
  return {
    device: request.device,
    tool: request.tool,
    params: request.params ?? {},
    callId: request.callId,
    purpose: request.purpose,
    source: request.source === Source.UNSPECIFIED ? door : request.source,
    principal,
  };
}

/**
 * Calls a tool and waits: for the end of a call that runs, and at most `wait_ms` for the human that a held one needs.
 * A caller that leaves changes nothing.
 */
export async function callTool(
  calls: Calls,
  request: CallToolRequest,
  principal: Principal,
  signal: AbortSignal,
  door: Source = Source.RPC,
): Promise<Call> {
  const begun = await calls.begin(wishOf(request, principal, door));
  if (request.noWait) return begun.call;
  return waitForEnd(begun, request.waitMs === 0 ? DEFAULT_WAIT_MS : request.waitMs, signal);
}

/** The call when it has ended, or as it stands when nobody has decided after `waitMs`. */
async function waitForEnd(begun: LiveCall | EndedCall, waitMs: number, signal: AbortSignal): Promise<Call> {
  if (begun.call.state !== CallState.HELD) return begun.ended;
  const waiting = new AbortController();
  const timeout = sleep(waitMs, undefined, { signal: AbortSignal.any([signal, waiting.signal]) }).catch(
    () => undefined,
  );
  try {
    await Promise.race([begun.ended, timeout]);
    // Approved just now and running: its end is worth the wait.
    return begun.call.state === CallState.HELD ? begun.call : await begun.ended;
  } finally {
    waiting.abort();
  }
}
