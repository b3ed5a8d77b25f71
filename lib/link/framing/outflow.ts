import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type Framing, FramingSchema, PieceSchema } from "../../../gen/ts/reeve/common/v1/framing_pb.ts";
import { DEFAULT_WINDOW_BYTES, MAX_WINDOW_BYTES } from "./limits.ts";
import { createSendQueue, type SendQueue, type Taken } from "./send-queue.ts";
import type { Shape } from "./shape.ts";

/** Whether the other side knows frames. */
export type Mode = "unknown" | "framed" | "plain";

/** What a frame says besides its items. */
export interface Saying {
  /** Bytes taken off the other direction. */
  consumedBytes: number;
  drain: boolean;
  /** The other side is to send a frame at once. */
  ask: boolean;
  /** A frame is due even where it holds nothing. */
  due: boolean;
}

/** One direction's frames as they go out. */
export interface Outflow<M, T> {
  readonly queue: SendQueue<T>;
  /** The next message; undefined where there is nothing to say. Throws as SendQueue.take does. */
  next(mode: Mode, saying: Saying): M | undefined;
  /** Applies what the other side says about its window. */
  received(framing: Framing): void;
  /** The other side says no more: nothing will ever be acknowledged. */
  unbounded(): void;
}

/** How it introduces itself in its first frame. */
export interface OutflowOptions {
  windowBytes: number;
  /** It sends at least a frame this often. */
  frameMs: number;
  /** Items wait until the mode is known. */
  waits: boolean;
}

/** Numbers what goes out and keeps to the other side's window. */
export function createOutflow<M, T>(shape: Shape<M, T>, options: OutflowOptions): Outflow<M, T> {
  const queue = createSendQueue(shape);
  let number = 0;
  let sentBytes = 0;
  let theirConsumed = 0;
  let theirWindow = DEFAULT_WINDOW_BYTES;

  const take = (mode: Mode): Taken<T> | undefined => {
    if (queue.isEmpty() || (options.waits && mode === "unknown")) return undefined;
    if (mode === "plain") return queue.take({ free: Infinity, idle: true, reserve: 0, large: "whole" });
    const inFlight = Math.max(0, sentBytes - theirConsumed);
    const taken = queue.take({
      free: theirWindow - inFlight,
      idle: inFlight === 0,
      reserve: theirWindow === Infinity ? 0 : theirWindow / 4,
      large: mode === "unknown" ? "wait" : "pieces",
    });
    sentBytes += taken?.bytes ?? 0;
    return taken;
  };

  return {
    queue,
    next(mode, { consumedBytes, drain, ask, due }) {
      const taken = take(mode);
      if (mode === "plain") return taken === undefined ? undefined : shape.build(taken.items);
      if (taken === undefined && !due && number > 0) return undefined;
      number++;
      const framing = create(FramingSchema);
      framing.number = BigInt(number);
      framing.consumedBytes = BigInt(consumedBytes);
      framing.drain = drain;
      framing.ask = ask;
      if (number === 1) {
        framing.windowBytes = BigInt(options.windowBytes);
        framing.heartbeat = durationFromMs(options.frameMs);
      }
      if (taken?.piece !== undefined) framing.pieces.push(create(PieceSchema, taken.piece));
      return shape.build(taken?.items ?? [], framing);
    },
    received(framing) {
      if (framing.windowBytes > 0n) theirWindow = Number(min(framing.windowBytes, BigInt(MAX_WINDOW_BYTES)));
      const consumed = Number(min(framing.consumedBytes, BigInt(sentBytes)));
      if (consumed > theirConsumed) theirConsumed = consumed;
    },
    unbounded() {
      theirWindow = Infinity;
    },
  };
}

function min(a: bigint, b: bigint): bigint {
  return a < b ? a : b;
}
