import { durationMs } from "@bufbuild/protobuf/wkt";
import type { CallToolRequest } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import type { Calls, EndedCall } from "./calls.ts";
import type { GovernedCall } from "./governed-call.ts";
import { type Face, observedIngress } from "./ingress.ts";
import type { OpenCall } from "./live-call.ts";
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
    queueMs: request.queueTimeout ? durationMs(request.queueTimeout) : 0,
    joinHeld: request.joinHeld,
  };
}

/** A call that was begun, and whether it is an earlier request's that asked for the same. */
export interface BegunTool {
  begun: OpenCall | EndedCall;
  joined: boolean;
}

/** Calls a tool; resolves with the call once policy has decided about it, or with an old one. Throws as `Calls.begin`. */
export async function beginTool(
  calls: Calls,
  request: CallToolRequest,
  principal: Principal,
  face: Face,
): Promise<BegunTool> {
  let joined = false;
  const onJoin = () => {
    joined = true;
  };
  const begun = await calls.begin({ ...callRequestFrom(request, principal, face), onJoin });
  return { begun, joined };
}

/**
 * Calls a tool and waits: for the end of a call that runs, and at most `approval_wait` for the human that a held one needs.
 * A queued call is returned at once.
 * A caller that leaves changes nothing.
 */
export async function callTool(
  calls: Calls,
  request: CallToolRequest,
  principal: Principal,
  signal: AbortSignal,
  face: Face,
): Promise<{ call: GovernedCall; joined: boolean }> {
  const { begun, joined } = await beginTool(calls, request, principal, face);
  if (request.noWait) return { call: begun.call, joined };
  const waitMs = request.approvalWait ? durationMs(request.approvalWait) : DEFAULT_WAIT_MS;
  return { call: await waitUntilSettled(begun, { waitMs, signal }), joined };
}
