import { create } from "@bufbuild/protobuf";
import { type WatchRunResponse, WatchRunResponseSchema } from "../../../gen/ts/reeve/agent/v1/run_service_pb.ts";
import type { ChangeFeed } from "./change-feed.ts";
import type { RunStore } from "./store.ts";

/** How many events are read at a time. */
const PAGE = 200;

/** What watching needs. */
export interface WatchPorts {
  store: Pick<RunStore, "get" | "events">;
  feed: Pick<ChangeFeed, "next">;
}

/**
 * The run as it is, then its events from a number on until it has ended or the signal aborts: what is stored, whichever
 * replica wrote it.
 */
export async function* watchRun(
  { store, feed }: WatchPorts,
  { runId, from }: { runId: string; from: number },
  signal: AbortSignal,
): AsyncGenerator<WatchRunResponse> {
  const run = await store.get(runId);
  if (run === undefined) return;
  yield create(WatchRunResponseSchema, { run });
  for (let next = from; !signal.aborted; ) {
    const stopWaiting = new AbortController();
    // Asked before the read, so that no change is missed in between.
    const changed = feed.next(runId, AbortSignal.any([signal, stopWaiting.signal]));
    try {
      const { events, ended } = await store.events(runId, next, PAGE);
      for (const event of events) {
        yield create(WatchRunResponseSchema, { event });
        next = event.sequence + 1;
      }
      if (ended) return;
      if (events.length < PAGE) await changed;
    } finally {
      stopWaiting.abort();
    }
  }
}
