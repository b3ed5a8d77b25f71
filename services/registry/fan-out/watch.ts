import { setTimeout as sleep } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import type { CallEvent } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type WatchFanOutResponse,
  WatchFanOutResponseSchema,
} from "../../../gen/ts/reeve/fanout/v1/fan_out_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { Calls } from "../calls/calls.ts";
import { createEventQueue } from "../calls/event-queue.ts";
import type { AwaitedCall } from "../calls/wait-until-settled.ts";
import type { PlannedDevice } from "./plan.ts";
import { wavesOf } from "./progress.ts";
import { findCall } from "./run.ts";
import { runWave, type WaveReader } from "./run-wave.ts";
import type { FanOutStore, StoredFanOut } from "./store.ts";

/** What watching uses. */
export interface WatchPorts {
  store: Pick<FanOutStore, "find">;
  calls: Pick<Calls, "find" | "outputOf">;
}

/** How often what is stored is looked at, in milliseconds: any replica may own the fan-out. */
const LOOK_MS = 100;

/**
 * What happens to a fan-out, whichever replica owns it: its plan, that it is held, wave after wave with its calls, and the
 * summary last. Ends without one when the signal aborts.
 */
export async function* watchFanOut(
  first: StoredFanOut,
  { store, calls }: WatchPorts,
  signal: AbortSignal,
): AsyncGenerator<WatchFanOutResponse> {
  const { id, waves } = first;
  yield response({ case: "plan", value: { fanOutId: id, waves: wavesOf(waves) } });
  let held = false;
  let shown = 0;
  for (let one = first; !signal.aborted; one = (await store.find(id)) ?? one) {
    if (one.approvalId !== "" && !held) {
      held = true;
      yield response({
        case: "held",
        value: { approvalId: one.approvalId, message: "a human has to decide about it" },
      });
    }
    for (; shown < one.startedWaves && !signal.aborted; shown++) {
      const wave = wavesOf(waves)[shown];
      if (wave === undefined) break;
      yield response({ case: "wave", value: wave });
      const callOn = (device: PlannedDevice) => callOrRefusal(one, device, { store, calls }, signal);
      yield* eventsOf(id, waves[shown] ?? [], callOn, { outputOf: calls.outputOf, signal });
    }
    if (one.ended && one.summary !== undefined) return yield response({ case: "summary", value: one.summary });
    if (!one.ended) await sleep(LOOK_MS, undefined, { signal: signal }).catch(() => undefined);
  }
}

async function* eventsOf(
  fanOutId: string,
  wave: readonly PlannedDevice[],
  callOn: (device: PlannedDevice) => Promise<AwaitedCall>,
  { outputOf, signal }: { outputOf: WaveReader["outputOf"]; signal: AbortSignal },
): AsyncGenerator<WatchFanOutResponse> {
  const names = new Map<string, string>();
  const events = createEventQueue();
  const onEvent = (device: string, event: CallEvent) => {
    names.set(event.callId, device);
    return events.push(event);
  };
  const end = () => events.end();
  signal.addEventListener("abort", end, { once: true });
  void runWave(wave, { fanOutId, callOn, reader: { onEvent, outputOf }, signal }).then(end, (error: unknown) =>
    events.end(ConnectError.from(error)),
  );
  try {
    for await (const batch of events.batches()) {
      for (const event of batch) {
        yield response({ case: "call", value: { device: names.get(event.callId) ?? "", event } });
      }
    }
  } finally {
    signal.removeEventListener("abort", end);
  }
}

/** The call on a device, once it began. Throws why it never became one, once that is stored. */
async function callOrRefusal(
  first: StoredFanOut,
  device: PlannedDevice,
  { store, calls }: WatchPorts,
  signal: AbortSignal,
): Promise<AwaitedCall> {
  for (let one = first; ; one = (await store.find(first.id)) ?? one) {
    signal.throwIfAborted();
    const call = await findCall(one, device, calls);
    if (call !== undefined) return call;
    const refused = one.summary?.failed[device.name];
    if (refused !== undefined || one.ended) {
      const { error, errorMessage = "it never started" } = refused?.status ?? {};
      throw fault(error?.reason ?? ErrorReason.NOT_STARTED, error?.metadata, { message: errorMessage });
    }
    await sleep(LOOK_MS, undefined, { signal: signal }).catch(() => undefined);
  }
}

function response(event: MessageInitShape<typeof WatchFanOutResponseSchema>["event"] & object): WatchFanOutResponse {
  return create(WatchFanOutResponseSchema, { event });
}
