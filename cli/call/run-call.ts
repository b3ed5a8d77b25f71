import { randomBytes } from "node:crypto";
import type { JsonObject } from "@bufbuild/protobuf";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Call } from "../../gen/ts/reeve/registry/v1/call_pb.ts";
import { fault, faultDetail } from "../../lib/fault/fault.ts";
import type { CallEnd } from "../../services/agent/toolbox/call-progress.ts";
import { followCall } from "../../services/agent/toolbox/follow-call.ts";
import type { CallReport } from "../../services/agent/toolbox/toolbox.ts";
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
  /** How long to keep the call for a device that is away, in seconds; 0 is not at all. */
  queueSeconds: number;
}

/** What running a call rests on. */
export interface RunOptions {
  session: Session;
  /** Aborting it cancels the call where it runs. */
  signal: AbortSignal;
  onReport(report: CallReport): void;
}

/** How long the end of a cancelled call is waited for, in milliseconds. */
const CANCEL_GRACE_MS = 60_000;

/** The pauses before new tries when the stream breaks while the call runs, in milliseconds: 20 seconds in all. */
const RETRY_DELAYS_MS = [200, 400, 800, 1600, 3000, 4000, 5000, 5000];

/**
 * Sends a call and resolves with it at its end, or as it stands when nobody has decided in time or its device is away. Throws why it never
 * became a call, and INTERRUPTED where its end is not known.
 */
export async function runCall(order: CallOrder, options: RunOptions): Promise<Call> {
  const callId = order.callId ?? `cli-${randomBytes(12).toString("hex")}`;
  const { waitMs: wanted, noWait, purpose = "", ...wish } = order;
  const waitMs = Math.max(1, wanted);
  const request = { ...wish, callId, purpose, waitMs, client: "cli" };
  const { registry } = options.session;
  if (noWait) return present((await registry.callTool({ ...request, noWait })).call);
  const end = await followCall({
    client: registry,
    request,
    approvalWaitMs: wanted,
    cancelGraceMs: CANCEL_GRACE_MS,
    retryDelaysMs: RETRY_DELAYS_MS,
    signal: options.signal,
    onEvent: options.onReport,
  });
  return callOf(end, callId);
}

function callOf(end: CallEnd, callId: string): Call {
  switch (end.kind) {
    case "ended":
    case "held":
    case "queued":
      return end.call;
    case "refused":
      throw fault(end.refusal.error?.reason ?? ErrorReason.INTERNAL, end.refusal.error?.metadata, {
        message: end.refusal.message,
        violations: end.refusal.error?.violations ?? [],
      });
    case "lost":
      if (faultDetail(end.cause) !== undefined) throw end.cause;
      throw fault(
        ErrorReason.INTERRUPTED,
        { call_id: callId },
        {
          message: `the link to the registry broke; \`reeve calls show ${callId}\` tells what became of the call`,
          cause: end.cause,
        },
      );
  }
}

function present(call: Call | undefined): Call {
  if (call !== undefined) return call;
  throw fault(ErrorReason.INTERNAL, {}, { message: "the registry answered without a call" });
}
