import { isEnd } from "../../client/call-progress.ts";
import { newCallId } from "../../client/call-tool.ts";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import type { RegistryClient } from "../../client/registry.ts";
import { mayReconnect, pause, RETRY_DELAYS_MS } from "../../client/retry.ts";
import { type Call, CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault, faultDetail } from "../../lib/fault/fault.ts";
import type { BegunCall, McpGate, WaitOptions } from "../../lib/mcp/gate.ts";
import type { McpToolset } from "../../lib/mcp/toolset.ts";

/** The RPCs that a gate uses. */
export type GateClient = Pick<RegistryClient, "callTool" | "getCall" | "listCalls" | "watchCall" | "cancelCall">;

/**
 * A registry's gate as the face for MCP uses it, over the registry's own RPCs, with an agent's token: an agent sees its own
 * calls only.
 */
export function clientGate(client: GateClient, toolset: () => Promise<McpToolset>): McpGate {
  return {
    toolset: () => answered(toolset()),
    async begin({ deviceId, ...request }) {
      // An id of its own, so that sending it again runs nothing twice.
      const callId = newCallId("mcp");
      const send = () => client.callTool({ ...request, device: deviceId, callId, noWait: true, joinHeld: true });
      const { call, joined } = await answered(again(send));
      return begunCall(client, present(call), joined);
    },
    async find(callId) {
      const { call } = await answered(again(() => client.getCall({ callId })));
      return begunCall(client, present(call));
    },
    async cancel(callId) {
      const { call } = await answered(again(() => client.cancelCall({ callId })));
      return present(call);
    },
    async list(request) {
      const { calls, nextPageToken } = await answered(again(() => client.listCalls(request)));
      return { calls: calls.map(completeCall), nextPageToken };
    },
    async read(callId) {
      const { call } = await answered(again(() => client.getCall({ callId })));
      return present(call);
    },
  };
}

function begunCall(client: GateClient, begun: CompleteCall, joined = false): BegunCall {
  let call = begun;
  return {
    joined,
    get call() {
      return call;
    },
    async wait(options) {
      for await (const seen of progressOf(client, call, options)) call = seen;
      return call;
    },
  };
}

/** How a call stands, from now until its end, or until it is waited for no longer. Connections that break are opened again. */
async function* progressOf(
  client: GateClient,
  begun: CompleteCall,
  { heldMs, signal, onEvent }: WaitOptions,
): AsyncGenerator<CompleteCall, void, void> {
  if (isSettled(begun) || signal.aborted) return;
  if (begun.status.state === CallState.HELD && heldMs === 0) return;
  const held = new AbortController();
  const stop = AbortSignal.any([signal, held.signal]);
  let timer: NodeJS.Timeout | undefined;
  try {
    for (let failures = 0; !stop.aborted; failures++) {
      try {
        for await (const { event } of client.watchCall({ callId: begun.id }, { signal: stop })) {
          failures = 0;
          if (event === undefined) continue;
          await onEvent?.(event);
          if (event.event.case !== "call") continue;
          const call = completeCall(event.event.value);
          clearTimeout(timer);
          if (call.status.state === CallState.HELD) timer = setTimeout(() => held.abort(), heldMs);
          yield call;
          if (isSettled(call)) return;
        }
      } catch (error: unknown) {
        const delay = RETRY_DELAYS_MS[failures];
        if (stop.aborted) return;
        if (!mayReconnect(error) || delay === undefined) throw unreachable(error);
        await pause(delay, stop);
      }
    }
  } finally {
    clearTimeout(timer);
  }
}

function isSettled({ status: { state } }: CompleteCall): boolean {
  return isEnd(state) || state === CallState.QUEUED;
}

/** Tries again what is safe to be sent again, after pauses, while the registry does not answer. */
async function again<T>(send: () => Promise<T>): Promise<T> {
  for (const delay of RETRY_DELAYS_MS) {
    try {
      return await send();
    } catch (error: unknown) {
      if (!mayReconnect(error)) throw error;
      await pause(delay, new AbortController().signal);
    }
  }
  return send();
}

function answered<T>(promise: Promise<T>): Promise<T> {
  return promise.catch((error: unknown) => {
    throw unreachable(error);
  });
}

/** What a model reads where there is no registry. Other errors stay as they are. */
function unreachable(error: unknown): unknown {
  if (faultDetail(error) !== undefined || !mayReconnect(error)) return error;
  const message = "the registry does not answer: the user starts it with `reeve up`, and `reeve doctor` looks closer";
  return fault(ErrorReason.NOT_READY, {}, { message, cause: error });
}

function present(call: Call | undefined): CompleteCall {
  if (call === undefined) throw new TypeError("the registry returned no call");
  return completeCall(call);
}
