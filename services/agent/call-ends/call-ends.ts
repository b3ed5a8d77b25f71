import { isEnd } from "../../../client/call-progress.ts";
import { completeCall } from "../../../client/complete-call.ts";
import { reasonOf } from "../../../client/errors.ts";
import type { RegistryClient } from "../../../client/registry.ts";
import { pause } from "../../../client/retry.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";

/** What is used of the registry. */
export type CallEndsClient = Pick<RegistryClient, "getCall" | "watchCall">;

/** Notices the ends of calls, for all runs of a worker. */
export interface CallEnds {
  /** Reports the end of a call once it has one. Again with the same id: nothing more. */
  watch(callId: string, client: CallEndsClient): void;
  close(): void;
}

/** How calls are watched. */
export interface CallEndsOptions {
  /** A call has ended, or is not known to the registry. May be called more than once for a call. Must not throw. */
  onEnd: (callId: string) => void;
  /** How many calls are followed on streams at the same time; those beyond are asked about in turn. Default 64. */
  maxStreams?: number;
  /** How often each of the others is asked about, in milliseconds. Default 10000. */
  askMs?: number;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5000;

/**
 * Follows calls on the registry's events. A stream begins with the call as it is, so what happened while there was none is
 * not missed: over breaks, restarts and other replicas of the registry alike.
 */
export function createCallEnds({ onEnd, maxStreams = 64, askMs = 10_000 }: CallEndsOptions): CallEnds {
  const stop = new AbortController();
  const watched = new Set<string>();
  let streams = 0;

  const onStream = async (callId: string, client: CallEndsClient): Promise<boolean> => {
    for await (const { event } of client.watchCall({ callId }, { signal: stop.signal })) {
      if (event?.event.case === "call" && isEnd(completeCall(event.event.value).status.state)) return true;
    }
    return false;
  };
  const once = async (callId: string, client: CallEndsClient): Promise<boolean> => {
    await pause(askMs * (0.5 + Math.random()), stop.signal);
    const { call } = await client.getCall({ callId }, { signal: stop.signal });
    return call !== undefined && isEnd(completeCall(call).status.state);
  };
  const look = async (callId: string, client: CallEndsClient): Promise<boolean> => {
    if (streams >= maxStreams) return once(callId, client);
    streams++;
    try {
      return await onStream(callId, client);
    } finally {
      streams--;
    }
  };
  const follow = async (callId: string, client: CallEndsClient): Promise<void> => {
    for (let failures = 0; !stop.signal.aborted; failures++) {
      try {
        if (await look(callId, client)) return;
      } catch (error: unknown) {
        if (reasonOf(error) === ErrorReason.NOT_FOUND) return;
      }
      const ms = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** failures);
      await pause(ms * (0.5 + Math.random() / 2), stop.signal);
    }
  };

  return {
    watch(callId, client) {
      if (watched.has(callId) || stop.signal.aborted) return;
      watched.add(callId);
      void follow(callId, client).then(() => {
        watched.delete(callId);
        if (!stop.signal.aborted) onEnd(callId);
      });
    },
    close: () => stop.abort(),
  };
}
