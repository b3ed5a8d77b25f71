import type { ServiceImpl } from "@connectrpc/connect";
import { Source } from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { RegistryService } from "../../gen/ts/reeve/registry/v1/registry_service_pb.ts";
import { principalOf } from "../../lib/serve/context.ts";
import { callTool } from "./calls/call-tool.ts";
import { callTools } from "./calls/call-tools.ts";
import type { Calls } from "./calls/calls.ts";
import { cancelCall } from "./calls/cancel-call.ts";
import { faceOf } from "./calls/ingress.ts";
import { listCalls } from "./calls/list-calls.ts";
import { watchCall } from "./calls/watch-call.ts";
import type { Directory } from "./devices/directory.ts";
import { type Locks, listDevices, withLocks } from "./devices/list-devices.ts";
import { listTools } from "./tools/list-tools.ts";

/** The registry's RPCs. */
export function registryRoutes(calls: Calls, directory: Directory, locks: Locks): ServiceImpl<typeof RegistryService> {
  return {
    async getDevice({ device }) {
      const [found] = await withLocks([await directory.find(device)], locks);
      return { device: found };
    },
    listDevices: (request) => listDevices(directory, locks, request),
    listTools: (request) => listTools(directory, request),
    callTool: async (request, context) => ({
      call: await callTool(calls, request, principalOf(context), context.signal, faceOf(context, Source.RPC)),
    }),
    callTools: (requests, context) =>
      callTools(calls, requests, principalOf(context), context.signal, faceOf(context, Source.STREAM)),
    getCall: async ({ callId }, context) => ({ call: await calls.read(callId, principalOf(context)) }),
    listCalls: (request, context) => listCalls(calls.store, directory, request, principalOf(context)),
    watchCall: ({ callId }, context) => watchCall(calls, callId, principalOf(context), context.signal),
    whoAmI: (_request, context) => {
      const { id, roles, name } = principalOf(context);
      return { principalId: id, roles: [...roles], name };
    },
    cancelCall: async ({ callId }, context) => ({ call: await cancelCall(calls, callId, principalOf(context)) }),
  };
}
