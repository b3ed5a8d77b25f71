import { ConnectError } from "@connectrpc/connect";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import type { CallEnd } from "./end.ts";
import type { LiveCall } from "./live-call.ts";

/** Ends that a lock of the device may be the reason for, beside canceled ones. */
const OF_THE_LINK = new Set<ErrorReason | undefined>([ErrorReason.DEVICE_OFFLINE, ErrorReason.INTERRUPTED]);

/**
 * Says why a call ended that its caller did not cancel: the fault that it was canceled with, as where its token was
 * revoked, or the lock of its device. The state and the receipt stay what they are.
 */
export async function explainEnd(
  end: CallEnd,
  { call, canceled }: Pick<LiveCall, "call" | "canceled">,
  lockOf: (deviceId: string) => Promise<ConnectError | undefined>,
): Promise<CallEnd> {
  const isCanceled = end.state === CallState.CANCELED;
  const { aborted, reason } = canceled.signal;
  if (isCanceled && aborted) return faultDetail(reason) === undefined ? end : because(ConnectError.from(reason), end);
  if (!isCanceled && !OF_THE_LINK.has(end.error?.reason)) return end;
  // The end does not depend on the lock, and a database that is unavailable is reported elsewhere.
  const lock = await lockOf(call.spec.deviceId).catch(() => undefined);
  return lock === undefined ? end : because(lock, end);
}

function because(why: ConnectError, end: CallEnd): CallEnd {
  return { ...end, error: faultDetail(why), message: `${why.rawMessage}; ${whatRan(end)}` };
}

function whatRan({ state, receipt }: CallEnd): string {
  if (state === CallState.UNKNOWN) return "it was sent before, and what it did is not known";
  return receipt === undefined ? "nothing ran" : "what ran was ended";
}
