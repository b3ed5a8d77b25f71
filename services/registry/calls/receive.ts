import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { CallApprovalSchema, CallSpecSchema } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import type { Ingress } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import type { DecisionRequest } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { type Principal, requireTool } from "../../../lib/auth/principal.ts";
import { shortName } from "../../../lib/ids/short-name.ts";
import { canonicalArguments, withoutSecrets } from "../../../lib/tool/arguments.ts";
import { type Directory, resolveTool } from "../devices/directory.ts";
import type { OfferedTool } from "../tools/offered.ts";
import { type GovernedCall, newGovernedCall } from "./governed-call.ts";
import { questionOf } from "./question.ts";

/** What a caller asks for, through any face. */
export interface CallRequest {
  device: string;
  tool: string;
  params: JsonObject;
  /** The id that the caller chose, so that trying again is safe; it is the caller's own: see `scopedId`. Default none. */
  chosenId: string;
  /** The call's id, where it is known. Default a new one. */
  callId: string;
  purpose: string;
  /** How it came in, as the registry observed it. */
  ingress: Ingress;
  /** What the caller says that it is. For display only. */
  client: string;
  principal: Principal;
  /** The fan-out that the call belongs to. Default none. */
  fanOutId?: string;
  /** The approval of the whole fan-out, where it has one. Default none. */
  approvalId?: string;
  /** How long the call may wait for a device that is offline, in milliseconds. Default 0: not at all. */
  queueMs?: number;
  /** Whether a held call of the same principal, device, tool and arguments is this one. Default false. */
  joinHeld?: boolean;
  /** Called where it is: the call was an earlier request's. */
  onJoin?: () => void;
}

/** A call that holds to its tool's schema, and the question about it. */
export interface ReceivedCall {
  call: GovernedCall;
  tool: OfferedTool;
  args: Uint8Array;
  /** The arguments without their secrets; undefined where they have none. */
  shown: Uint8Array | undefined;
  question: DecisionRequest;
}

/** Dependencies of receiving. */
export interface ReceiveFacts {
  directory: Pick<Directory, "resolve">;
  newCallId(): string;
  now(): number;
}

/**
 * Turns a request into a call: finds the device and the tool, and brings the arguments into canonical form. Throws a
 * fault that names what is wrong; nothing has been written by then.
 */
export function receiveCall(request: CallRequest, facts: ReceiveFacts): ReceivedCall {
  const device = facts.directory.resolve(request.device);
  requireTool(request.principal, request.tool);
  const tool = resolveTool(device, request.tool);
  const args = canonicalArguments(tool, request.params);
  const nowMs = facts.now();
  const { queueMs = 0 } = request;
  const { principal, approvalId = "" } = request;
  const spec = create(CallSpecSchema, {
    tool: tool.spec.name,
    capabilities: tool.spec.capabilities,
    deviceId: device.id,
    deviceName: shortName(device.name),
    argsDigest: args.digest,
    purpose: request.purpose,
    principalId: principal.id,
    principalName: shortName(principal.name),
    ingress: request.ingress,
    client: request.client,
    fanOutId: request.fanOutId ?? "",
    ...(queueMs > 0 && { queueExpireTime: timestampFromMs(nowMs + queueMs) }),
  });
  const call = newGovernedCall(request.callId === "" ? facts.newCallId() : request.callId, spec, nowMs);
  if (approvalId !== "") call.status.approval = create(CallApprovalSchema, { id: approvalId });
  const timeoutMs = args.timeoutMs === 0 ? tool.spec.defaultTimeoutMs : args.timeoutMs;
  return {
    call,
    tool,
    args: args.bytes,
    shown: withoutSecrets(args.bytes, tool.spec.inputSchema),
    question: questionOf({
      call,
      device,
      tool,
      roles: principal.roles,
      args: args.bytes,
      timeoutMs,
    }),
  };
}
