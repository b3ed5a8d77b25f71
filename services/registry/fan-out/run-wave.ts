import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { CallSchema, CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { type CallEvent, CallEventSchema } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorDetailSchema } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail, reasonOf } from "../../../lib/fault/fault.ts";
import { fanOutCallId } from "../../../lib/ids/fan-out-call-id.ts";
import { type GovernedCall, governedCall } from "../calls/governed-call.ts";
import { isEnd } from "../calls/lifecycle.ts";
import { callEvent } from "../calls/live-call.ts";
import type { OutputSource } from "../calls/output-source.ts";
import { type AwaitedCall, waitUntilSettled } from "../calls/wait-until-settled.ts";
import { watchOutput } from "../calls/watch-output.ts";
import type { PlannedDevice } from "./plan.ts";

/** How to go through the calls of a wave. */
export interface WaveOptions {
  fanOutId: string;
  /** The call on a device. Throws where it never becomes a call. */
  callOn(device: PlannedDevice): Promise<AwaitedCall>;
  /** Who is shown what happens to the calls. Default none. */
  reader?: WaveReader;
  /** Ends the wait for the calls, which go on. */
  signal: AbortSignal;
}

/** Who is shown what happens to the calls of a wave. */
export interface WaveReader {
  /** Receives it. Of output the promise resolves when it was read. */
  onEvent(device: string, event: CallEvent): Promise<void> | undefined;
  outputOf(found: { readonly call: GovernedCall }): OutputSource;
}

/** The longest that a timer runs: a held call is waited for until it is decided, or has expired. */
const FOREVER_MS = 2 ** 31 - 1;

/**
 * The calls of one wave, all at once. Resolves when every call has ended or is queued for its device, with each call as it
 * is then, by device name.
 */
export async function runWave(
  devices: readonly PlannedDevice[],
  options: WaveOptions,
): Promise<Map<string, GovernedCall>> {
  const results = await Promise.all(
    devices.map(async (device) => [device.name, await resultOn(device, options)] as const),
  );
  return new Map(results);
}

async function resultOn(
  device: PlannedDevice,
  { fanOutId, callOn, reader, signal }: WaveOptions,
): Promise<GovernedCall> {
  let call: AwaitedCall;
  try {
    call = await callOn(device);
  } catch (error: unknown) {
    signal.throwIfAborted();
    const refused = refusedCall(fanOutCallId(fanOutId, device.id), device.id, error);
    const value = {
      ...(refused.status.error && { error: refused.status.error }),
      message: refused.status.errorMessage,
    };
    void reader?.onEvent(
      device.name,
      create(CallEventSchema, { callId: refused.id, event: { case: "refusal", value } }),
    );
    return refused;
  }
  const { watch } = call;
  const reading =
    reader &&
    watch &&
    watchOutput({ ...call, watch }, reader.outputOf(call), (event) => reader.onEvent(device.name, event));
  void reader?.onEvent(device.name, callEvent(call.call));
  try {
    // A call whose replica is gone is resumed by another one: how it is now is all that is known here.
    const settled = await waitUntilSettled(call, { waitMs: FOREVER_MS, signal }).catch(() => call.call);
    if (isEnd(settled.status.state) && !signal.aborted) await reading?.done.catch(() => undefined);
    return { ...settled };
  } finally {
    reading?.stop();
  }
}

/** Stands in for a call that never became one: nothing was written and nothing ran. */
function refusedCall(id: string, deviceId: string, error: unknown): GovernedCall {
  const detail = faultDetail(error) ?? create(ErrorDetailSchema, { reason: reasonOf(error) });
  const errorMessage = faultDetail(error) === undefined ? "internal error" : ConnectError.from(error).rawMessage;
  const status = { state: CallState.FAILED, error: detail, errorMessage };
  return governedCall(create(CallSchema, { id, spec: { deviceId }, status }));
}
