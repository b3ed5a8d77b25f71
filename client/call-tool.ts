import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { CallState } from "../gen/ts/reeve/call/v1/call_pb.ts";
import { CallEventSchema } from "../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../gen/ts/reeve/common/v1/error_pb.ts";
import { type CallEnd, type CallProgress, type CallUpdate, createCallProgress, isEnd } from "./call-progress.ts";
import { type CallRequest, type CallStream, type CallStreamOptions, openCallStream } from "./call-stream.ts";
import { type CompleteCall, completeCall } from "./complete-call.ts";
import { createError, reasonOf, refusalError } from "./errors.ts";
import type { RegistryClient } from "./registry.ts";
import { mayReconnect, pause, RETRY_DELAYS_MS } from "./retry.ts";
import { openAwaitedCalls } from "./watched-calls.ts";

const CANCEL_EVERY_MS = 1000;

/** How long a stream whose call has ended may take to end as well before it is cut off, in milliseconds. */
const CLOSING_MS = 500;

/** The RPCs that following a call uses. */
export type CallClient = Pick<RegistryClient, "callTool" | "callTools" | "getCall" | "watchCall" | "cancelCall">;

/** How to follow a call. */
export interface FollowOptions {
  client: CallClient;
  request: CallRequest;
  /** How long a held call is waited for, in milliseconds. Default 60000. */
  approvalWaitMs?: number;
  /** How long the end of a canceled call is waited for, in milliseconds. Default 60000. */
  cancelGraceMs?: number;
  /** The pauses before each new try after the stream broke, in milliseconds. They start over once an event came. */
  retryDelaysMs?: readonly number[];
  /** Aborting it cancels the call. */
  signal?: AbortSignal;
  /** Receives what happens while the call runs. Must not throw. Default: nothing does, which is cheaper for the registry. */
  onUpdate?: (update: CallUpdate) => void;
  /** How calls are sent where `onUpdate` is given. Default: over CallTools, which needs HTTP/2. */
  open?: (client: CallClient, options: CallStreamOptions) => CallStream;
}

/** A call that may be given its id here. */
export type NewCall = Omit<CallRequest, "callId"> & { callId?: string };

/** How to make a call; the client and the call are given beside it. */
export type CallOptions = Omit<FollowOptions, "client" | "request">;

type Following = Required<FollowOptions>;

/**
 * Calls a tool and resolves with the call when it has ended, or as it is when no human has decided about it in time
 * (HELD), or when it waits for a device that is offline (QUEUED). Connections that break are opened again. Rejects with
 * why it never became a call, and with INTERRUPTED, naming the call, where its end is not known.
 */
export async function callTool(
  client: CallClient,
  { callId = newCallId(), ...request }: NewCall,
  options: CallOptions = {},
): Promise<CompleteCall> {
  const end = await followCall({ ...options, client, request: { ...request, callId } });
  if (end.kind === "refused") throw refusalError(end.refusal);
  if (end.kind !== "lost") return end.call;
  if (reasonOf(end.cause) !== ErrorReason.UNSPECIFIED) throw end.cause;
  const message = `the connection to the registry is gone; GetCall returns what became of the call ${callId}`;
  throw createError(ErrorReason.INTERRUPTED, message, { call_id: callId }, end.cause);
}

/**
 * A new call id. Its digits begin with the milliseconds since 1970 and end with 74 random bits, as in UUID version 7
 * (RFC 9562 §5.7): calls of one time lie together in the registry's and the device's indexes, which makes them cheaper to write.
 */
export function newCallId(prefix = "call"): string {
  const time = Date.now().toString(16).padStart(12, "0");
  return `${prefix}-${time}${crypto.randomUUID().replaceAll("-", "").slice(time.length)}`;
}

/**
 * Sends a call and follows it to its end. A stream that breaks is opened again and the call is sent again under the same
 * id, which runs nothing twice. Aborting the signal cancels the call and waits for its end; a call whose stream is broken
 * by then is canceled by CancelCall and never sent again. Never rejects.
 */
export async function followCall(options: FollowOptions): Promise<CallEnd> {
  const following: Following = {
    approvalWaitMs: 60_000,
    cancelGraceMs: 60_000,
    retryDelaysMs: RETRY_DELAYS_MS,
    signal: new AbortController().signal,
    onUpdate: () => undefined,
    ...options,
    open: options.onUpdate === undefined ? openAwaitedCalls : (options.open ?? openCallStream),
  };
  // Aborted with the CallEnd as its reason when waiting is over: it ends the stream and every pause.
  const stop = new AbortController();
  const giveUp = (end: CallEnd | undefined) => end !== undefined && stop.abort(end);
  const progress = createCallProgress(following.onUpdate, following.approvalWaitMs, () => {
    void afterWait(following, progress, stop.signal).then(giveUp);
  });
  const { signal, cancelGraceMs } = following;
  const grace = onceAborted(signal, () =>
    setTimeout(() => giveUp({ kind: "lost", cause: signal.reason }), cancelGraceMs),
  );
  try {
    return await followUntil(following, progress, stop.signal);
  } finally {
    progress.close();
    clearTimeout(grace.result());
    grace.off();
  }
}

/**
 * The end of a call that was held for as long as it is waited for; undefined where it is not held any more. A stream
 * need not report that a call was approved before the call ends, so the registry is asked.
 */
async function afterWait(
  { client, request, signal }: Following,
  progress: CallProgress,
  stop: AbortSignal,
): Promise<CallEnd | undefined> {
  if (signal.aborted) return undefined;
  try {
    const { call } = await client.getCall({ callId: request.callId }, { signal: stop });
    if (call === undefined) return { kind: "lost", cause: new Error("the registry returned no call") };
    if (completeCall(call).status.state === CallState.HELD) return { kind: "held", call: completeCall(call) };
    return progress.take(create(CallEventSchema, { callId: call.id, event: { case: "call", value: call } }));
  } catch (cause: unknown) {
    return { kind: "lost", cause };
  }
}

async function followUntil(following: Following, progress: CallProgress, stop: AbortSignal): Promise<CallEnd> {
  const { signal, retryDelaysMs } = following;
  for (let failures = 0; ; failures++) {
    const received = progress.received();
    const end = await streamOnce(following, progress, stop).catch((error: unknown) => ({ broken: error }));
    if (!("broken" in end)) return end;
    if (progress.received() > received) failures = 0;
    const delay = mayReconnect(end.broken) ? retryDelaysMs[failures] : undefined;
    if (delay !== undefined) await pause(delay, AbortSignal.any([stop, signal]));
    if (stop.aborted) return stop.reason as CallEnd;
    if (signal.aborted) return cancelByRpc(following);
    if (delay === undefined) return { kind: "lost", cause: end.broken };
  }
}

/**
 * Opens a stream, sends the call and reads until its end. Rejects when the stream ends before that. The stream of a call
 * that has ended is left to end by itself, which takes a round trip: one that is cut off counts as a caller that left.
 */
async function streamOnce(following: Following, progress: CallProgress, stop: AbortSignal): Promise<CallEnd> {
  const { client, request, signal, open } = following;
  const closing = new AbortController();
  const ended = Promise.withResolvers<CallEnd>();
  const stream = open(client, { signal: AbortSignal.any([stop, closing.signal]) });
  const next = progress.nextOutput();
  // What was printed while there was no stream comes first.
  const resumed = next === undefined ? request : { ...request, outputFromSequence: next };
  const call = stream.call(resumed, (event) => {
    const end = progress.take(event);
    if (end !== undefined) ended.resolve(end);
  });
  // What ends the call is taken from its events; what rejects here is the stream's end.
  call.catch(ended.reject);
  // Sent again, because a cancel that overtakes the call it is for has no effect.
  const cancel = onceAborted(signal, () => {
    stream.cancel(request.callId);
    return setInterval(() => stream.cancel(request.callId), CANCEL_EVERY_MS);
  });
  try {
    const end = await ended.promise;
    stream.end();
    // The stream of a queued call would stay open until its device is online.
    if (end.kind !== "queued") await Promise.race([stream.closed, pause(CLOSING_MS, stop)]);
    return end;
  } finally {
    cancel.off();
    clearInterval(cancel.result());
    stream.end();
    closing.abort();
  }
}

/** Runs something once when the signal is aborted, at once where it is already. */
function onceAborted<T>(signal: AbortSignal, run: () => T): { result(): T | undefined; off(): void } {
  let result: T | undefined;
  const listener = () => {
    result = run();
  };
  if (signal.aborted) listener();
  else signal.addEventListener("abort", listener, { once: true });
  return { result: () => result, off: () => signal.removeEventListener("abort", listener) };
}

async function cancelByRpc({ client, request, cancelGraceMs }: Following): Promise<CallEnd> {
  try {
    const { call } = await client.cancelCall({ callId: request.callId }, { timeoutMs: cancelGraceMs });
    const ended = call && completeCall(call);
    if (ended !== undefined && isEnd(ended.status.state)) return { kind: "ended", call: ended };
    return { kind: "lost", cause: new ConnectError("the call had not ended yet", Code.Unavailable) };
  } catch (cause: unknown) {
    return { kind: "lost", cause };
  }
}
