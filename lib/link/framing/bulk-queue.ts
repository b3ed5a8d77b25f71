import { FRAME_ITEMS, MAX_ITEM_BYTES, MAX_UNFINISHED_BYTES, MAX_WHOLE_BYTES, PIECE_BYTES } from "./limits.ts";
import { tooMuch } from "./link-faults.ts";
import type { Shape } from "./shape.ts";

/** Bytes of an item that goes in pieces. */
export interface OutgoingPiece {
  message: number;
  data: Uint8Array;
  last: boolean;
}

/** What a turn may take. */
export interface BulkRoom {
  /** Bytes that the window holds; Infinity where there is none. */
  free: number;
  /** Nothing is in flight: one item or piece may go, however large. */
  idle: boolean;
  /** What becomes of an item over MAX_WHOLE_BYTES: it goes in pieces, goes whole, or waits until that is known. */
  large: "pieces" | "whole" | "wait";
}

/** What came of a turn. */
export type Turn<T> =
  | { kind: "taken"; items: T[]; piece: OutgoingPiece | undefined; bytes: number }
  /** Something could go if the window had more room. */
  | { kind: "full" }
  /** Nothing can go, whatever the window says. */
  | { kind: "none" };

/** Large items that wait to be sent, and what waits behind them. */
export interface BulkQueue<T> {
  /** True where something of that key waits. */
  has(key: string): boolean;
  /** Adds an item. A new key's first turn comes when `after` small items have gone. */
  add(key: string, item: T, size: number, after: number): void;
  /** One turn of the next key that can make one: items of up to PIECE_BYTES, or a piece. */
  take(room: BulkRoom, gone: number): Turn<T>;
  /** How many keys have something waiting. */
  readonly keys: number;
  /** Bytes that wait in items which go whole. */
  readonly wholeBytes: number;
  /** Bytes that wait in items which go in pieces. */
  readonly largeBytes: number;
}

interface KeyQueue<T> {
  items: T[];
  after: number;
  open: { message: number | undefined; bytes: Uint8Array; at: number } | undefined;
}

/** Queues by key that take turns. Items that are under way in pieces together never exceed what the other side holds. */
export function createBulkQueue<T>(shape: Shape<unknown, T>): BulkQueue<T> {
  const queues = new Map<string, KeyQueue<T>>();
  let wholeBytes = 0;
  let largeBytes = 0;
  let unfinishedBytes = 0;
  let messages = 0;

  const takeWhole = (queue: KeyQueue<T>, room: BulkRoom): Turn<T> => {
    let count = 0;
    let bytes = 0;
    for (; count < queue.items.length && count < FRAME_ITEMS; count++) {
      const size = shape.sizeOf(queue.items[count] as T);
      const isLarge = size > MAX_WHOLE_BYTES;
      if (count > 0 && (isLarge || bytes + size > Math.min(room.free, MAX_WHOLE_BYTES))) break;
      if (size > room.free && !room.idle) return { kind: "full" };
      bytes += size;
      if (isLarge) largeBytes -= size;
      else wholeBytes -= size;
    }
    return { kind: "taken", items: queue.items.splice(0, count), piece: undefined, bytes };
  };

  const takePiece = (queue: KeyQueue<T>, room: BulkRoom): Turn<T> => {
    const item = queue.items[0] as T;
    queue.open ??= { message: undefined, bytes: encode(shape, item), at: 0 };
    const { open } = queue;
    const total = open.bytes.length;
    const size = Math.min(PIECE_BYTES, total - open.at);
    if (open.message === undefined) {
      if (unfinishedBytes > 0 && unfinishedBytes + total > MAX_UNFINISHED_BYTES) return { kind: "none" };
      if (size > room.free && !room.idle) return { kind: "full" };
      unfinishedBytes += total;
      open.message = ++messages;
    } else if (size > room.free && !room.idle) return { kind: "full" };
    const data = open.bytes.subarray(open.at, open.at + size);
    open.at += size;
    const last = open.at === total;
    if (last) {
      unfinishedBytes -= total;
      largeBytes -= shape.sizeOf(item);
      queue.items.shift();
      queue.open = undefined;
    }
    return { kind: "taken", items: [], piece: { message: open.message, data, last }, bytes: data.length };
  };

  const takeFrom = (queue: KeyQueue<T>, room: BulkRoom): Turn<T> => {
    if (room.large === "whole" || shape.sizeOf(queue.items[0] as T) <= MAX_WHOLE_BYTES) return takeWhole(queue, room);
    return room.large === "pieces" ? takePiece(queue, room) : { kind: "none" };
  };

  return {
    has: (key) => queues.has(key),
    add(key, item, size, after) {
      const queue = queues.get(key);
      if (queue === undefined) queues.set(key, { items: [item], after, open: undefined });
      else queue.items.push(item);
      if (size > MAX_WHOLE_BYTES) largeBytes += size;
      else wholeBytes += size;
    },
    take(room, gone) {
      let outcome: Turn<T> = { kind: "none" };
      for (const [key, queue] of queues) {
        if (queue.after > gone) continue;
        const turn = takeFrom(queue, room);
        if (turn.kind === "taken") {
          // To the end of the line.
          queues.delete(key);
          if (queue.items.length > 0) queues.set(key, queue);
          return turn;
        }
        if (turn.kind === "full") outcome = turn;
      }
      return outcome;
    },
    get keys() {
      return queues.size;
    },
    get wholeBytes() {
      return wholeBytes;
    },
    get largeBytes() {
      return largeBytes;
    },
  };
}

function encode<T>(shape: Shape<unknown, T>, item: T): Uint8Array {
  const bytes = shape.encode(item);
  if (bytes.length <= MAX_ITEM_BYTES) return bytes;
  throw tooMuch("item", MAX_ITEM_BYTES, `an item of ${bytes.length} bytes is larger than a link takes`);
}
