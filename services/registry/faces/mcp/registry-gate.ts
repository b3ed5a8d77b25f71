import { create } from "@bufbuild/protobuf";
import { CallToolRequestSchema } from "../../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Ingress } from "../../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import type { Principal } from "../../../../lib/auth/principal.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import type { BegunCall, McpGate } from "../../../../lib/mcp/gate.ts";
import type { McpToolset } from "../../../../lib/mcp/toolset.ts";
import { beginTool } from "../../calls/call-tool.ts";
import type { Calls, EndedCall } from "../../calls/calls.ts";
import { cancelCall } from "../../calls/cancel-call.ts";
import { listOwnCalls } from "../../calls/list-calls.ts";
import type { OpenCall } from "../../calls/live-call.ts";
import { waitUntilSettled } from "../../calls/wait-until-settled.ts";

/** The registry as the face for MCP uses it for one principal. */
export function registryGate(calls: Calls, toolset: (allowed: Principal) => McpToolset, principal: Principal): McpGate {
  return {
    toolset: async () => toolset(principal),
    async begin({ deviceId, tool, params, client }) {
      const request = create(CallToolRequestSchema, { device: deviceId, tool, params, client, joinHeld: true });
      const { begun, joined } = await beginTool(calls, request, principal, Ingress.LLM);
      return begunCall(begun, joined);
    },
    find: async (callId) => begunCall(await calls.find(callId, principal)),
    cancel: (callId) => cancelCall(calls, callId, principal),
    list: (request) => listOwnCalls(calls.store, request, principal),
    async read(callId) {
      const call = await calls.read(callId, principal);
      // An operator may see those of others, but not as its own.
      if (call.spec.principalId !== principal.id) throw fault(ErrorReason.NOT_FOUND, { resource: `calls/${callId}` });
      return call;
    },
  };
}

function begunCall(call: OpenCall | EndedCall, joined = false): BegunCall {
  return {
    joined,
    call: call.call,
    async wait({ heldMs, signal, onEvent }) {
      const unwatch = onEvent && "watch" in call ? call.watch(onEvent) : undefined;
      try {
        return await waitUntilSettled(call, { waitMs: heldMs, signal });
      } finally {
        unwatch?.();
      }
    },
  };
}
