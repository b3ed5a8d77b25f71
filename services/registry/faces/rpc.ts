import type { ConnectRouter } from "@connectrpc/connect";
import { CallService } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { CapabilityService } from "../../../gen/ts/reeve/capability/v1/capability_service_pb.ts";
import { Ingress } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { DeviceService } from "../../../gen/ts/reeve/device/v1/device_service_pb.ts";
import { PrincipalService } from "../../../gen/ts/reeve/principal/v1/principal_service_pb.ts";
import { ToolService } from "../../../gen/ts/reeve/tool/v1/tool_service_pb.ts";
import { principalOf } from "../../../lib/server/context.ts";
import { callTool } from "../calls/call-tool.ts";
import { callTools } from "../calls/call-tools.ts";
import type { Calls } from "../calls/calls.ts";
import { cancelCall } from "../calls/cancel-call.ts";
import { faceOf } from "../calls/ingress.ts";
import { listCalls } from "../calls/list-calls.ts";
import { readCallOutput } from "../calls/read-call-output.ts";
import { watchCall } from "../calls/watch-call.ts";
import type { Directory } from "../devices/directory.ts";
import { type Locks, listDevices, withLocks } from "../devices/known-device.ts";
import { getCapability, listCapabilities } from "./capabilities.ts";
import { getTool, listTools } from "./list-tools.ts";

/** The services for callers: each resource's RPCs. */
export const CALLER_SERVICES = [CallService, CapabilityService, DeviceService, PrincipalService, ToolService];

/** Serves the RPCs for callers. */
export function callerRoutes(router: ConnectRouter, calls: Calls, directory: Directory, locks: Locks): void {
  router.service(DeviceService, {
    async getDevice({ device }) {
      const [found] = await withLocks([await directory.find(device)], locks);
      return { device: found };
    },
    listDevices: (request) => listDevices(directory, locks, request),
  });
  router.service(ToolService, {
    getTool: (request, context) => getTool(directory, request, principalOf(context)),
    listTools: (request, context) => listTools(directory, request, principalOf(context)),
  });
  router.service(CapabilityService, {
    getCapability: (request) => getCapability(directory, request),
    listCapabilities: (request) => listCapabilities(directory, request),
  });
  router.service(CallService, {
    callTool: (request, context) =>
      callTool(calls, request, principalOf(context), context.signal, faceOf(context, Ingress.RPC)),
    callTools: (requests, context) =>
      callTools(calls, requests, principalOf(context), context.signal, faceOf(context, Ingress.STREAM)),
    getCall: async ({ callId }, context) => ({ call: await calls.read(callId, principalOf(context)) }),
    listCalls: (request, context) => listCalls(calls.store, directory, request, principalOf(context)),
    watchCall: ({ callId, outputFromSequence: from }, context) =>
      watchCall(calls, { callId, from }, principalOf(context), context.signal),
    getCallOutput: (request, context) => readCallOutput(calls, request, principalOf(context)),
    cancelCall: async ({ callId }, context) => ({ call: await cancelCall(calls, callId, principalOf(context)) }),
  });
  router.service(PrincipalService, {
    whoAmI: (_request, context) => {
      const { id, roles, name, tools = [] } = principalOf(context);
      return { principalId: id, roles: [...roles], name, tools: [...tools] };
    },
  });
}
