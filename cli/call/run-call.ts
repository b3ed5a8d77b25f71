import type { JsonObject } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import type { CallUpdate } from "../../client/call-progress.ts";
import { callTool, newCallId } from "../../client/call-tool.ts";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import type { Call } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault, reasonOf } from "../../lib/fault/fault.ts";
import type { Session } from "../session.ts";

/** A call as it goes out. */
export interface CallOrder {
  device: string;
  tool: string;
  params: JsonObject;
  /** Default: a new one. */
  callId: string | undefined;
  purpose: string | undefined;
  /** How long a held call is waited for, in milliseconds. */
  waitMs: number;
  /** Do not wait for anything but policy's decision. */
  noWait: boolean;
  /** How long the call may wait for a device that is offline, in milliseconds. 0: not at all. */
  queueMs: number;
}

/** How to run a call. */
export interface RunOptions {
  session: Session;
  /** Aborting it cancels the call where it runs. */
  signal: AbortSignal;
  onUpdate(update: CallUpdate): void;
}

/**
 * Sends a call and resolves with it at its end, or as it is when no human has decided in time or its device is offline.
 * Rejects with why it never became a call, and with INTERRUPTED where its end is not known.
 */
export async function runCall(order: CallOrder, options: RunOptions): Promise<CompleteCall> {
  const callId = order.callId ?? newCallId("cli");
  const { waitMs: approvalWaitMs, noWait, purpose = "", queueMs, ...content } = order;
  const request = { ...content, callId, purpose, client: "cli", queueTimeout: durationFromMs(queueMs) };
  const { registry } = options.session;
  if (noWait) return present((await registry.callTool({ ...request, noWait })).call);
  return callTool(registry, request, {
    approvalWaitMs,
    signal: options.signal,
    onUpdate: options.onUpdate,
  }).catch((error: unknown): never => {
    if (reasonOf(error) !== ErrorReason.INTERRUPTED) throw error;
    const message = `the connection to the registry is lost; \`reeve call show ${callId}\` shows what became of the call`;
    throw fault(ErrorReason.INTERRUPTED, { call_id: callId }, { message, cause: error });
  });
}

function present(call: Call | undefined): CompleteCall {
  if (call !== undefined) return completeCall(call);
  throw fault(ErrorReason.INTERNAL, {}, { message: "the registry answered without a call" });
}
