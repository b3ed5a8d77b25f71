import { isEnd } from "../client/call-progress.ts";
import { type CallRequest, openCallStream as openStream } from "../client/call-stream.ts";
import { type CompleteCall, completeCall } from "../client/complete-call.ts";
import type { RegistryClient } from "../client/registry.ts";
import type { CallEvent } from "../gen/ts/reeve/call/v1/call_service_pb.ts";

/** A caller's own CallTools stream, event by event. */
export interface CallStream {
  call(request: Omit<CallRequest, "callId"> & { callId?: string }): void;
  cancel(callId: string): void;
  /** The next event that is wanted; those before it are passed over. */
  next<T>(take: (event: CallEvent) => T | undefined): Promise<T>;
  /** The end of a call; events before it are passed over. */
  ended(callId: string): Promise<CompleteCall>;
  /** Every event so far, passed over or not. */
  readonly seen: readonly CallEvent[];
  /** Announces that no more calls come, and resolves when the stream has ended, which is after its last call. */
  end(): Promise<void>;
}

/** Opens a stream of calls. */
export function openCallStream(registry: RegistryClient): CallStream {
  const seen: CallEvent[] = [];
  let read = 0;
  let changed = Promise.withResolvers<void>();
  let closed: { end: { error: unknown } | undefined } | undefined;
  const change = () => {
    changed.resolve();
    changed = Promise.withResolvers();
  };
  const opened = openStream(registry, {
    onEvent(event) {
      seen.push(event);
      change();
    },
  });
  void opened.closed.then((end) => {
    closed = { end };
    change();
  });
  const stream: CallStream = {
    call: ({ callId = "", ...request }) => void opened.call({ ...request, callId }).catch(() => undefined),
    cancel: opened.cancel,
    async next(take) {
      for (;;) {
        while (read < seen.length) {
          const taken = take(seen[read++] as CallEvent);
          if (taken !== undefined) return taken;
        }
        if (closed?.end !== undefined) throw closed.end.error;
        if (closed !== undefined) throw new Error(`the stream ended after ${seen.length} events`);
        await changed.promise;
      }
    },
    ended: (callId) => stream.next((event) => (event.callId === callId ? endIn(event) : undefined)),
    seen,
    async end() {
      opened.end();
      const end = await opened.closed;
      if (end !== undefined) throw end.error;
    },
  };
  return stream;
}

/** The call in an event, where it has ended. */
export function endIn({ event }: CallEvent): CompleteCall | undefined {
  if (event.case !== "call") return undefined;
  const call = completeCall(event.value);
  return isEnd(call.status.state) ? call : undefined;
}

/** What a tool printed, in an event. */
export function printedIn({ event }: CallEvent): string | undefined {
  return event.case === "output" ? Buffer.from(event.value.data).toString() : undefined;
}
