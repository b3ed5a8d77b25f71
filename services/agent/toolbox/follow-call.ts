import { setTimeout as sleep } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type Client, Code, ConnectError } from "@connectrpc/connect";
import { CallState } from "../../../gen/ts/reeve/registry/v1/call_pb.ts";
import {
  CallEventSchema,
  type CallerMessageSchema,
  type CallToolRequestSchema,
  type RegistryService,
} from "../../../gen/ts/reeve/registry/v1/registry_service_pb.ts";
import { type BatchQueue, createBatchQueue } from "../../../lib/async/batch-queue.ts";
import { faultDetail, isRetryable } from "../../../lib/fault/fault.ts";
import { type CallEnd, type CallProgress, createCallProgress, isEnd } from "./call-progress.ts";
import type { CallReport } from "./toolbox.ts";

const CANCEL_EVERY_MS = 1000;

/** How long a stream whose call has ended may take to end as well before it is cut off, in milliseconds. */
const CLOSING_MS = 500;

/** What following a call rests on. */
export interface FollowOptions {
  client: Client<typeof RegistryService>;
  /** The call. Its id is what makes sending it again safe. */
  request: MessageInitShape<typeof CallToolRequestSchema> & { callId: string };
  /** How long a held call is waited for, in milliseconds. */
  approvalWaitMs: number;
  /** How long the end of a cancelled call is waited for, in milliseconds. */
  cancelGraceMs: number;
  /** How long to wait before each new try after the stream broke, in milliseconds. A stream that told something starts over. */
  retryDelaysMs: readonly number[];
  signal: AbortSignal;
  onEvent: (report: CallReport) => void;
}

/**
 * Sends a call over a stream and follows it to its end. A stream that breaks is opened again and the call is sent again
 * under the same id, which runs nothing twice. Aborting the signal cancels the call and waits for its end; a call whose
 * stream is broken by then is cancelled by CancelCall and never sent again.
 */
export async function followCall(options: FollowOptions): Promise<CallEnd> {
  // Aborted with the CallEnd as its reason when waiting is over: it ends the stream and every pause.
  const stop = new AbortController();
  const giveUp = (end: CallEnd | undefined) => end !== undefined && stop.abort(end);
  const progress = createCallProgress(options.onEvent, options.approvalWaitMs, () => {
    void afterWait(options, progress, stop.signal).then(giveUp);
  });
  const grace = onceAborted(options.signal, () =>
    setTimeout(() => giveUp({ kind: "lost", cause: options.signal.reason }), options.cancelGraceMs),
  );
  try {
    return await followUntil(options, progress, stop.signal);
  } finally {
    progress.close();
    clearTimeout(grace.result());
    grace.off();
  }
}

/**
 * The end of a call that was held for as long as it is waited for; undefined where it is not held any more. A stream
 * need not tell that a call was approved before the call ends, so the registry is asked.
 */
async function afterWait(
  { client, request, signal }: FollowOptions,
  progress: CallProgress,
  stop: AbortSignal,
): Promise<CallEnd | undefined> {
  if (signal.aborted) return undefined;
  try {
    const { call } = await client.getCall({ callId: request.callId }, { signal: stop });
    if (call === undefined) return { kind: "lost", cause: new Error("the registry returned no call") };
    if (call.state === CallState.HELD) return { kind: "held", call };
    return progress.take(create(CallEventSchema, { callId: call.id, event: { case: "call", value: call } }));
  } catch (cause: unknown) {
    return { kind: "lost", cause };
  }
}

async function followUntil(options: FollowOptions, progress: CallProgress, stop: AbortSignal): Promise<CallEnd> {
  for (let failures = 0; ; failures++) {
    const told = progress.told();
    const end = await streamOnce(options, progress, stop).catch((error: unknown) => ({ broken: error }));
    if (!("broken" in end)) return end;
    if (stop.aborted) return stop.reason as CallEnd;
    if (options.signal.aborted) return cancelByRpc(options);
    if (progress.told() > told) failures = 0;
    const delay = mayRetry(end.broken) ? options.retryDelaysMs[failures] : undefined;
    if (delay === undefined) return { kind: "lost", cause: end.broken };
    await sleep(delay, undefined, { signal: AbortSignal.any([stop, options.signal]) }).catch(() => undefined);
    if (stop.aborted) return stop.reason as CallEnd;
    if (options.signal.aborted) return cancelByRpc(options);
  }
}

/**
 * Opens a stream, sends the call and reads until its end. Throws when the stream ends before that. The stream of a call that
 * has ended is left to end by itself, which takes a round trip: one that is cut off counts as a caller that went away.
 */
async function streamOnce(options: FollowOptions, progress: CallProgress, stop: AbortSignal): Promise<CallEnd> {
  const { client, request, signal } = options;
  const closing = new AbortController();
  const outgoing = createBatchQueue<MessageInitShape<typeof CallerMessageSchema>>();
  outgoing.push({ message: { case: "call", value: request } });
  const sendCancel = () => outgoing.push({ message: { case: "cancelCallId", value: request.callId } });
  // Sent again, because a cancel that overtakes the call it is for has no effect.
  const cancel = onceAborted(signal, () => {
    sendCancel();
    return setInterval(sendCancel, CANCEL_EVERY_MS);
  });
  let ended: CallEnd | undefined;
  let late: NodeJS.Timeout | undefined;
  try {
    const responses = client.callTools(requests(outgoing), { signal: AbortSignal.any([stop, closing.signal]) });
    for await (const response of responses) {
      for (const event of response.events) {
        if (event.callId === request.callId) ended ??= progress.take(event);
      }
      if (ended === undefined) continue;
      // The stream of a call that is kept would stay open for as long as that.
      if (ended.kind === "queued") return ended;
      outgoing.end();
      late ??= setTimeout(() => closing.abort(), CLOSING_MS);
    }
  } catch (error: unknown) {
    if (ended === undefined) throw error;
  } finally {
    cancel.off();
    clearInterval(cancel.result());
    clearTimeout(late);
    outgoing.end();
    closing.abort();
  }
  if (ended !== undefined) return ended;
  throw new ConnectError("the stream ended before the call", Code.Unavailable);
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

async function* requests(outgoing: BatchQueue<MessageInitShape<typeof CallerMessageSchema>>) {
  for await (const messages of outgoing.batches()) yield { messages };
}

async function cancelByRpc({ client, request, cancelGraceMs }: FollowOptions): Promise<CallEnd> {
  try {
    const { call } = await client.cancelCall({ callId: request.callId }, { timeoutMs: cancelGraceMs });
    if (call !== undefined && isEnd(call.state)) return { kind: "ended", call };
    return { kind: "lost", cause: new Error("the call had not ended yet") };
  } catch (cause: unknown) {
    return { kind: "lost", cause };
  }
}

const HOPELESS: ReadonlySet<Code> = new Set([
  Code.Unauthenticated,
  Code.PermissionDenied,
  Code.InvalidArgument,
  Code.Unimplemented,
]);

/** A broken transport may end with any code; only a refusal that says why, or one that cannot change, is final. */
function mayRetry(error: unknown): boolean {
  if (faultDetail(error) !== undefined) return isRetryable(error);
  return !HOPELESS.has(ConnectError.from(error).code);
}
