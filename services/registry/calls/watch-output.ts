import { create } from "@bufbuild/protobuf";
import { type CallEvent, CallEventSchema, type OutputGap } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import type { ExecutionOutput } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { isEnd } from "./lifecycle.ts";
import type { OpenCall, Watcher, WatchOptions } from "./live-call.ts";
import { createOutputFollower, type OutputFollower } from "./output-follower.ts";
import type { OutputSource } from "./output-source.ts";

/** What one reader wants of an open call. */
export interface ReaderOptions extends Pick<WatchOptions, "states"> {
  /** The number of the first chunk wanted, of what was printed before. Default: what is printed from now on. */
  from?: number | undefined;
}

/** A reader of an open call. */
export interface Reading {
  /** The reader wants no more. Safe to repeat. */
  stop(): void;
  /** Resolves when the call has ended and the reader was given its end; rejects where the call is interrupted. */
  readonly done: Promise<void>;
}

/**
 * Gives a reader what happens to a call: its states, and its output sanitized and in order, what it missed first. A reader that
 * is behind what was printed before does not slow the program down; one that has caught up does.
 */
export function watchOutput(
  call: Pick<OpenCall, "call" | "watch" | "ended">,
  source: OutputSource,
  reader: Watcher,
  { from, states }: ReaderOptions = {},
): Reading {
  const callId = call.call.id;
  let follower: OutputFollower | undefined;
  let ending: Promise<unknown> | undefined;
  let isOver = false;

  const send = (output: ExecutionOutput) => reader(outputEvent(callId, output));
  const onGap = (gap: OutputGap) => void reader(gapEvent(callId, gap));
  const following = (): OutputFollower =>
    (follower ??= createOutputFollower({ callId, source, from, send, onGap, isOver: () => isOver }));
  const take: Watcher = (event) => {
    if (isOver) return undefined;
    if (event.event.case === "output") return following().take(event.event.value);
    // Of the way between replicas: the numbers show what is missing, and it is read from the device.
    if (event.event.case === "outputGap") return undefined;
    const isLast = event.event.case === "call" && isEnd(event.event.value.status?.state ?? 0);
    if (!isLast || (follower === undefined && from === undefined)) return reader(event);
    // All of the output comes before the end.
    ending = following()
      .finish(from !== undefined)
      .then(() => (isOver ? undefined : void reader(event)));
    return undefined;
  };
  const options = states === undefined ? {} : { states };
  const unwatch = [call.watch(take, { ...options, output: from === undefined })];
  if (from !== undefined) {
    void following()
      .catchUp()
      .then(() => {
        if (isOver || ending !== undefined) return undefined;
        unwatch.push(
          call.watch((event) => (event.event.case === "output" ? take(event) : undefined), { states: () => false }),
        );
        // What was printed until the device knew of this reader.
        return following().catchUp();
      });
  }
  const done = call.ended.then(() => ending).then(() => undefined);
  // It may not be awaited where the reader has stopped.
  done.catch(() => undefined);
  return {
    stop() {
      isOver = true;
      for (const one of unwatch.splice(0)) one();
    },
    done,
  };
}

/** The event that says that a call has printed something. */
export function outputEvent(callId: string, output: ExecutionOutput): CallEvent {
  return create(CallEventSchema, { callId, event: { case: "output", value: output } });
}

/** The event that says that some of a call's output cannot be sent. */
export function gapEvent(callId: string, value: OutputGap): CallEvent {
  return create(CallEventSchema, { callId, event: { case: "outputGap", value } });
}
