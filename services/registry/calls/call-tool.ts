import type { Call } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import type { CallToolRequest } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import type { Calls } from "./calls.ts";
import { type Face, observedIngress } from "./ingress.ts";
import type { CallRequest } from "./receive.ts";
import { waitUntilSettled } from "./wait-until-settled.ts";

/** How long a caller waits for a human by default, in milliseconds. */
const DEFAULT_WAIT_MS = 60_000;

/** What a request asks for, as it came in by a face. */
export function callRequestFrom(request: CallToolRequest, principal: Principal, face: Face): CallRequest {
  return {
    device: request.device,
    tool: request.tool,
    params: request.params ?? {},
    chosenId: request.callId,
    callId: "",
    purpose: request.purpose,
    ingress: observedIngress(face, principal),
    client: request.client,
    principal,
    queueSeconds: request.queueSeconds,
  };
}

/**
 * Calls a tool and waits: for the end of a call that runs, and at most `wait_ms` for the human that a held one needs. A
 * call that is kept for its device is returned at once.
 * A caller that leaves changes nothing.
 */
export async function callTool(
  calls: Calls,
  request: CallToolRequest,
  principal: Principal,
  signal: AbortSignal,
  face: Face,
): Promise<Call> {
  const begun = await calls.begin(callRequestFrom(request, principal, face));
  if (request.noWait) return begun.call;
  return waitUntilSettled(begun, { waitMs: request.waitMs === 0 ? DEFAULT_WAIT_MS : request.waitMs, signal });
}
