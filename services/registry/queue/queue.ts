import { durationMs, timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { CallQueue, QueueTurn } from "../calls/call-queue.ts";
import { type CallEnd, failedEnd } from "../calls/end.ts";
import type { GovernedCall } from "../calls/governed-call.ts";
import { isQueueable } from "../calls/lifecycle.ts";
import { questionOf } from "../calls/question.ts";
import type { TokenStatuses } from "../calls/token-statuses.ts";
import { type Directory, resolveTool } from "../devices/directory.ts";
import type { KnownDevice } from "../devices/known-device.ts";
import type { Presence } from "./presence.ts";
import type { QueueStore } from "./store.ts";

/** Dependencies of a queue. */
export interface QueueOptions {
  store: QueueStore;
  presence: Presence;
  directory: Pick<Directory, "byId">;
  tokenStatuses: TokenStatuses;
  now(): number;
}

/** A queue without an order of its own: each call waits for its device, and the device's ledger runs each once. */
export function createQueue({ store, presence, directory, tokenStatuses, now }: QueueOptions): CallQueue {
  const askAgain = async (call: GovernedCall, args: Uint8Array): Promise<QueueTurn> => {
    const status = await tokenStatuses(call.spec.principalId);
    if (!status.valid) return { kind: "end", end: deniedEnd(status.why) };
    const delivery = await store.nextDelivery(call.id);
    if (delivery === undefined) throw fault(ErrorReason.TAMPERED, { what: `queued_calls/${call.id}` });
    const device = deviceOf(call, directory);
    const question = questionOf({
      call,
      device,
      tool: resolveTool(device, call.spec.tool),
      roles: status.roles ?? delivery.roles,
      args,
      timeoutMs: delivery.timeoutMs,
      delivery: delivery.number,
      time: timestampFromMs(now()),
    });
    return { kind: "ask", question };
  };

  return {
    note: (call, { principal, timeout }) =>
      isQueueable(call)
        ? store.note(call.id, { roles: principal?.roles ?? [], timeoutMs: timeout ? durationMs(timeout) : 0 })
        : undefined,
    mustQueue: (call) => isQueueable(call) && directory.byId(call.spec.deviceId)?.online !== true,
    async next(call, args, signal) {
      const untilMs = call.spec.queueExpireTime === undefined ? 0 : timestampMs(call.spec.queueExpireTime);
      const arrival = await presence.awaitOnline(call.spec.deviceId, { untilMs, signal });
      if (arrival === "aborted") return { kind: "canceled" };
      if (arrival === "late") return { kind: "end", end: expiredEnd(call, directory) };
      try {
        return await askAgain(call, args);
      } catch (error: unknown) {
        return { kind: "end", end: failedEnd(error) };
      }
    },
    forget: (call) => isQueueable(call) && store.forget(call.id),
  };
}

function deviceOf({ spec: { deviceId } }: GovernedCall, directory: Pick<Directory, "byId">): KnownDevice {
  const device = directory.byId(deviceId);
  if (device !== undefined) return device;
  const message = "the device that the call was queued for is not known any more";
  throw fault(ErrorReason.UNKNOWN_DEVICE, { device: deviceId, available: "" }, { message });
}

function expiredEnd({ spec: { deviceId } }: GovernedCall, directory: Pick<Directory, "byId">): CallEnd {
  const device = directory.byId(deviceId)?.name ?? deviceId;
  const message = `${device} did not come back in the time that the call was queued for; nothing ran`;
  return failedEnd(fault(ErrorReason.QUEUE_EXPIRED, { device }, { message }));
}

function deniedEnd(why: "expired" | "revoked"): CallEnd {
  const message = `the token that asked for this was ${why} while the call waited for its device; nothing ran`;
  return { ...failedEnd(fault(ErrorReason.TOKEN_REFUSED, { why }, { message })), state: CallState.DENIED };
}
