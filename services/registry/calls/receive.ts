import { create, type JsonObject } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { DecisionRequest, Source } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { DecisionRequestSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { type Call, CallSchema, CallState } from "../../../gen/ts/reeve/registry/v1/call_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import { type Directory, resolveTool } from "../devices/directory.ts";
import type { KnownDevice } from "../devices/linked-device.ts";
import type { OfferedTool } from "../tools/offered.ts";
import { canonicalArguments } from "./arguments.ts";

/** What a caller asks for, whichever door it came through. */
export interface CallWish {
  device: string;
  tool: string;
  params: JsonObject;
  callId: string;
  purpose: string;
  source: Source;
  principal: Principal;
}

/** A call that holds to its tool's schema, and the question about it. */
export interface ReceivedCall {
  call: Call;
  tool: OfferedTool;
  args: Uint8Array;
  question: DecisionRequest;
}

/** What receiving rests on. */
export interface ReceiveFacts {
  directory: Directory;
  newCallId(): string;
  now(): number;
}

/**
 * Turns a wish into a call: finds the device and the tool, and brings the arguments into canonical form. Throws a
 * fault that names what is wrong; nothing has been written by then.
 */
export function receiveCall(wish: CallWish, facts: ReceiveFacts): ReceivedCall {
  const device = facts.directory.resolve(wish.device);
  const tool = resolveTool(device, wish.tool);
  const args = canonicalArguments(tool.input, wish.params);
  const call = create(CallSchema, {
    id: wish.callId === "" ? facts.newCallId() : wish.callId,
    deviceId: device.id,
    tool: tool.entry.name,
    capability: tool.entry.capability,
    principalId: wish.principal.id,
    source: wish.source,
    argsDigest: args.digest,
    state: CallState.RECEIVED,
    createTime: timestampFromMs(facts.now()),
    purpose: wish.purpose,
  });
  const timeoutMs = args.timeoutMs === 0 ? tool.entry.defaultTimeoutMs : args.timeoutMs;
  return {
    call,
    tool,
    args: args.bytes,
    question: questionOf(call, device, tool, wish.principal, args.bytes, timeoutMs),
  };
}

function questionOf(
  call: Call,
  device: KnownDevice,
  tool: OfferedTool,
  principal: Principal,
  args: Uint8Array,
  timeoutMs: number,
): DecisionRequest {
  const { entry } = tool;
  return create(DecisionRequestSchema, {
    callId: call.id,
    principal: { id: principal.id, roles: [...principal.roles] },
    device: {
      id: device.id,
      name: device.name,
      labels: device.labels,
      mode: device.manifest.mode,
      manifestDigest: device.manifestDigest,
      sandbox: device.manifest.sandbox,
    },
    tool: {
      name: entry.name,
      capability: entry.capability,
      readOnly: entry.annotations.readOnly,
      destructive: entry.annotations.destructive,
      idempotent: entry.annotations.idempotent,
      openWorld: entry.annotations.openWorld,
      requiresApproval: tool.requiresApproval,
      schemaDigest: entry.schemaDigest,
    },
    arguments: args,
    source: call.source,
    time: call.createTime,
    timeoutMs,
    purpose: call.purpose,
  });
}
