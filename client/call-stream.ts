import { create, type JsonObject } from "@bufbuild/protobuf";
import type { Duration } from "@bufbuild/protobuf/wkt";
import { Code, ConnectError } from "@connectrpc/connect";
import {
  type CallEvent,
  type CallerFrame,
  CallerFrameSchema,
  CallToolsRequestSchema,
} from "../gen/ts/reeve/call/v1/call_service_pb.ts";
import { isEnd } from "./call-progress.ts";
import { type CompleteCall, completeCall } from "./complete-call.ts";
import { refusalError } from "./errors.ts";
import type { RegistryClient } from "./registry.ts";

/** A call to send. */
export interface CallRequest {
  /** Makes sending it again safe: letters, digits, "-" and "_", at most 64. */
  callId: string;
  /** By name or id. May be left out where there is only one. */
  device?: string;
  tool: string;
  /** The arguments. Default none. */
  params?: JsonObject;
  /** Why it is made: shown to the human who decides. At most 1000 characters. */
  purpose?: string;
  /** How long the call may wait for a device that is offline. Default 0: not at all. */
  queueTimeout?: Duration;
  /** The number of the first chunk of output wanted, of a call that was sent before. Default: what is printed from now on. */
  outputFromSequence?: number;
  /** What the caller says that it is, for display only: printable ASCII, at most 64 characters. */
  client?: string;
}

/** Many calls on one connection to the registry. A break ends it: calls that run go on, and can be sent again elsewhere. */
export interface CallStream {
  /**
   * Sends a call. Resolves with the call when it has ended; rejects with why it was refused, or with what ended the stream
   * before. An id that waits for its end already is sent once more, and both wait.
   *
   * @param onEvent receives what happens to the call, its end included. Must not throw.
   */
  call(request: CallRequest, onEvent?: (event: CallEvent) => void): Promise<CompleteCall>;
  /** Asks that a call be canceled. Has no effect where it overtakes the call; nothing is reported but the call's end. */
  cancel(callId: string): void;
  /** Announces that no more calls come: the stream ends with its last call. */
  end(): void;
  /** Resolves when the stream has ended, with the error that ended it, if there was one. */
  readonly closed: Promise<{ error: unknown } | undefined>;
}

/** How to open a stream of calls. */
export interface CallStreamOptions {
  /** Aborting it cuts the stream off. Cancels nothing. */
  signal?: AbortSignal;
  /** Receives the events of all calls, in order, before the calls' own listeners do. Must not throw. */
  onEvent?: (event: CallEvent) => void;
}

/** Opens a stream of calls over CallTools, with the first call. Needs HTTP/2. */
export function openCallStream(
  client: Pick<RegistryClient, "callTools">,
  { signal, onEvent }: CallStreamOptions = {},
): CallStream {
  const outgoing = createOutgoing<CallerFrame>();
  const waiting = createWaiting();
  const closed = Promise.withResolvers<{ error: unknown } | undefined>();

  async function* requests() {
    for await (const frames of outgoing.batches()) yield create(CallToolsRequestSchema, { frames });
  }
  const read = async (): Promise<void> => {
    let end: { error: unknown } | undefined;
    try {
      for await (const { events } of client.callTools(requests(), signal && { signal })) {
        for (const event of events) {
          onEvent?.(event);
          waiting.take(event);
        }
      }
    } catch (error: unknown) {
      end = { error };
    }
    outgoing.end();
    waiting.fail(end?.error ?? new ConnectError("the stream ended before the call", Code.Unavailable));
    closed.resolve(end);
  };
  let isOpen = false;

  return {
    call(request, listener) {
      if (!isOpen) void read();
      isOpen = true;
      const ended = waiting.add(request.callId, listener);
      if (outgoing.ended) waiting.fail(new ConnectError("the stream has ended", Code.Unavailable));
      outgoing.push(create(CallerFrameSchema, { frame: { case: "call", value: request } }));
      return ended;
    },
    cancel: (callId) => outgoing.push(create(CallerFrameSchema, { frame: { case: "cancelCallId", value: callId } })),
    end() {
      outgoing.end();
      if (!isOpen) closed.resolve(undefined);
    },
    closed: closed.promise,
  };
}

interface Waiter {
  onEvent: ((event: CallEvent) => void) | undefined;
  end: PromiseWithResolvers<CompleteCall>;
}

/** Those who wait for calls, by call id. */
function createWaiting() {
  const waiters = new Map<string, Waiter[]>();
  return {
    add(callId: string, onEvent: Waiter["onEvent"]): Promise<CompleteCall> {
      const end = Promise.withResolvers<CompleteCall>();
      const same = waiters.get(callId);
      if (same === undefined) waiters.set(callId, [{ onEvent, end }]);
      else same.push({ onEvent, end });
      return end.promise;
    },
    take(event: CallEvent): void {
      const { callId, event: what } = event;
      const found = waiters.get(callId);
      if (found === undefined) return;
      const ends = what.case === "refusal" || (what.case === "call" && isEnd(completeCall(what.value).status.state));
      if (ends) waiters.delete(callId);
      for (const { onEvent, end } of found) {
        onEvent?.(event);
        if (what.case === "refusal") end.reject(refusalError(what.value));
        else if (ends && what.case === "call") end.resolve(completeCall(what.value));
      }
    },
    fail(error: unknown): void {
      for (const { end } of [...waiters.values()].flat()) end.reject(error);
      waiters.clear();
    },
  };
}

/** Gathers what is pushed while the transport is busy into one message. */
function createOutgoing<T>() {
  const items: T[] = [];
  let ended = false;
  let wake = Promise.withResolvers<void>();
  return {
    get ended() {
      return ended;
    },
    push(item: T): void {
      if (ended) return;
      items.push(item);
      wake.resolve();
    },
    end(): void {
      ended = true;
      wake.resolve();
    },
    async *batches(): AsyncGenerator<T[], void, void> {
      for (;;) {
        while (items.length > 0) yield items.splice(0, MAX_BATCH);
        if (ended) return;
        await wake.promise;
        wake = Promise.withResolvers();
      }
    },
  };
}

/** The most messages in one request. */
const MAX_BATCH = 256;
