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
  /**
   * How many calls are followed on streams at the same time, the newest ones: most calls end soon, and those followed longest
   * wait for a person or a device. Those are asked about instead. Default 64.
   */
  maxStreams?: number;
  /** When each of the others is asked about first, in milliseconds; then after longer pauses, up to 30 seconds. Default 5000. */
  askMs?: number;
}

const FIRST_PAUSE_MS = 200;
const LONGEST_PAUSE_MS = 5000;
const LONGEST_ASK_MS = 30_000;
const REQUEST_MS = 20_000;

/**
 * Follows calls on the registry's events. A stream begins with the call as it is, so what happened while there was none is
 * not missed: over breaks, restarts and other replicas of the registry alike.
 */
export function createCallEnds({ onEnd, maxStreams = 64, askMs = 5000 }: CallEndsOptions): CallEnds {
  const stop = new AbortController();
  const watched = new Set<string>();
  /** The streams, the oldest first. */
  const streams = new Set<AbortController>();

  /** Undefined where the stream was given to a newer call. */
  const onStream = async (callId: string, client: CallEndsClient): Promise<boolean | undefined> => {
    const own = new AbortController();
    streams.add(own);
    for (const oldest of streams) {
      if (streams.size <= maxStreams) break;
      streams.delete(oldest);
      oldest.abort();
    }
    try {
      if (own.signal.aborted) return undefined;
      const signal = AbortSignal.any([stop.signal, own.signal]);
      for await (const { event } of client.watchCall({ callId }, { signal })) {
        if (event?.event.case === "call" && isEnd(completeCall(event.event.value).status.state)) return true;
      }
      return false;
    } catch (error: unknown) {
      if (own.signal.aborted) return undefined;
      throw error;
    } finally {
      streams.delete(own);
    }
  };
  const ask = async (callId: string, client: CallEndsClient, asked: number): Promise<boolean> => {
    const ms = Math.min(LONGEST_ASK_MS, askMs * 2 ** asked);
    await pause(ms * (0.5 + Math.random() / 2), stop.signal);
    const { call } = await client.getCall({ callId }, { signal: stop.signal, timeoutMs: REQUEST_MS });
    return call !== undefined && isEnd(completeCall(call).status.state);
  };
  const follow = async (callId: string, client: CallEndsClient): Promise<void> => {
    let asked: number | undefined;
    for (let breaks = 0; !stop.signal.aborted; breaks++) {
      try {
        const ended: boolean | undefined = await (asked === undefined
          ? onStream(callId, client)
          : ask(callId, client, asked++));
        if (ended === true) return;
        if (ended === undefined) asked = 0;
      } catch (error: unknown) {
        if (reasonOf(error) === ErrorReason.NOT_FOUND) return;
      }
      if (asked !== undefined) continue;
      const ms = Math.min(LONGEST_PAUSE_MS, FIRST_PAUSE_MS * 2 ** breaks);
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
