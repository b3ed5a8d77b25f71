import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { type Call, CallSchema, CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { type CallEvent, CallEventSchema } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorDetailSchema, ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type FanOutResponse, FanOutResponseSchema } from "../../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { faultDetail, reasonOf } from "../../../lib/fault/fault.ts";
import { fanOutCallId } from "../../../lib/ids/fan-out-call-id.ts";
import { type AwaitedCall, callAtRest } from "../calls/at-rest.ts";
import { createEventQueue, type EventQueue } from "../calls/event-queue.ts";
import { callEvent } from "../calls/live-call.ts";
import type { PlannedDevice } from "./plan.ts";

/** What running a wave rests on. */
export interface WaveOptions {
  fanOutId: string;
  /** Begins the call on a device, or finds the one that began before. Throws where it never becomes a call. */
  begin(device: PlannedDevice): Promise<AwaitedCall>;
  /** How long a call that is held on its own waits for its human, in milliseconds. */
  waitMs: number;
  /** Ends the wait for the calls, which go on. */
  signal: AbortSignal;
}

/**
 * Calls the devices of one wave at once, and yields what happens as it comes. Ends when every call has ended, is kept for
 * its device or is held for too long; the result is how each stands, by device name. Nothing more is started while nobody
 * reads: what waits for the reader is bounded as in every stream of calls.
 */
export async function* runWave(
  devices: readonly PlannedDevice[],
  options: WaveOptions,
): AsyncGenerator<FanOutResponse, Map<string, Call>> {
  const names = new Map(devices.map(({ id, name }) => [fanOutCallId(options.fanOutId, id), name]));
  const results = new Map<string, Call>();
  const events = createEventQueue();
  const end = () => events.end();
  options.signal.addEventListener("abort", end, { once: true });
  const calling = devices.map(async (device) => {
    results.set(device.name, await callOn(device, options, events));
  });
  void Promise.all(calling).then(end, (error: unknown) => events.end(ConnectError.from(error)));
  try {
    for await (const batch of events.batches()) {
      for (const event of batch) yield responseOf(names.get(event.callId) ?? "", event);
    }
  } finally {
    options.signal.removeEventListener("abort", end);
  }
  return results;
}

async function callOn(device: PlannedDevice, options: WaveOptions, events: EventQueue): Promise<Call> {
  const callId = fanOutCallId(options.fanOutId, device.id);
  let begun: AwaitedCall;
  try {
    begun = await options.begin(device);
  } catch (error: unknown) {
    const refused = refusedCall(callId, device.id, error);
    const value = { ...(refused.error && { error: refused.error }), message: refused.errorMessage };
    void events.push(create(CallEventSchema, { callId, event: { case: "refusal", value } }));
    return refused;
  }
  const unwatch = begun.watch?.((event) => events.push(event));
  void events.push(callEvent(begun.call));
  try {
    // A life that breaks off is taken up by another process: how the call stands is all that is known.
    const call = await callAtRest(begun, options).catch(() => begun.call);
    return { ...call };
  } finally {
    unwatch?.();
  }
}

/** What stands in the place of a call that never became one: nothing was written and nothing ran. */
function refusedCall(id: string, deviceId: string, error: unknown): Call {
  const detail = faultDetail(error) ?? create(ErrorDetailSchema, { reason: reasonOf(error) ?? ErrorReason.INTERNAL });
  const errorMessage = faultDetail(error) === undefined ? "internal error" : ConnectError.from(error).rawMessage;
  return create(CallSchema, { id, deviceId, state: CallState.FAILED, error: detail, errorMessage });
}

function responseOf(device: string, event: CallEvent): FanOutResponse {
  return create(FanOutResponseSchema, { event: { case: "call", value: { device, event } } });
}
