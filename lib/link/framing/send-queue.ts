import { type BulkQueue, type BulkRoom, createBulkQueue, type OutgoingPiece } from "./bulk-queue.ts";
import { FRAME_BYTES, FRAME_ITEMS, PROMPT_BYTES } from "./limits.ts";
import type { Shape } from "./shape.ts";

/** What goes into the next frame. */
export interface Taken<T> {
  items: T[];
  piece: OutgoingPiece | undefined;
  /** What the window is charged for it. */
  bytes: number;
}

/** What may go into the next frame. */
export interface Room extends BulkRoom {
  /** Of the free bytes, those that large items leave to small ones. */
  reserve: number;
}

/** Items that wait to be sent. */
export interface SendQueue<T> {
  add(item: T): void;
  /** What goes next, within the room; undefined for nothing. Throws INPUT_TOO_LARGE for an item that no link takes. */
  take(room: Room): Taken<T> | undefined;
  /** Bytes that wait in items which go whole. */
  wholeBytes(): number;
  /** Bytes that wait in items which go in pieces. */
  largeBytes(): number;
  isEmpty(): boolean;
}

/** So many frames may pass over large items for want of a window before small ones wait for them. */
const PATIENCE_FRAMES = 8;

/**
 * Decides what goes next. Small items go first, in their order; items of more than PROMPT_BYTES take turns by key, a turn
 * each frame, so that neither a large result nor a program that prints without end holds up anything but its own call.
 * What comes for a key that has large items waiting waits behind them.
 */
export function createSendQueue<T>(shape: Shape<unknown, T>): SendQueue<T> {
  /** Made when the first large item comes: most links never see one. */
  let bulk: BulkQueue<T> | undefined;
  let urgent: T[] = [];
  let prompt: T[] = [];
  let promptBytes = 0;
  let promptAdded = 0;
  let passedOver = 0;

  const hasBulk = (): boolean => bulk !== undefined && bulk.keys > 0;
  const isWaiting = (key: string): boolean =>
    bulk?.has(key) === true || prompt.some((item) => shape.keyOf(item) === key);

  /** The urgent items, then small ones as far as they fit. */
  const takeSmall = ({ free, idle }: Room): Taken<T> => {
    const first = urgent;
    let bytes = 0;
    if (first.length > 0) {
      urgent = [];
      for (const item of first) bytes += shape.sizeOf(item);
    }
    const limit = Math.min(free, FRAME_BYTES) - bytes;
    if (promptBytes <= limit && prompt.length + first.length <= FRAME_ITEMS) {
      bytes += promptBytes;
      const items = first.length === 0 ? prompt : first.concat(prompt);
      prompt = [];
      promptBytes = 0;
      return { items, piece: undefined, bytes };
    }
    let count = 0;
    let taken = 0;
    for (; count < prompt.length && count + first.length < FRAME_ITEMS; count++) {
      const size = shape.sizeOf(prompt[count] as T);
      if (taken + size > limit && !(idle && count === 0)) break;
      taken += size;
    }
    promptBytes -= taken;
    return { items: first.concat(prompt.splice(0, count)), piece: undefined, bytes: bytes + taken };
  };

  /** Where large items were passed over for too long, they go first, and small ones wait for them. */
  const takeStarved = (large: BulkQueue<T>, room: Room): Taken<T> | undefined => {
    const turn = large.take(room, promptAdded - prompt.length);
    if (turn.kind === "none") return takeSmall(room);
    if (turn.kind === "full") return undefined;
    passedOver = 0;
    return turn;
  };

  return {
    add(item) {
      const size = shape.sizeOf(item);
      const isUrgent = size <= PROMPT_BYTES && shape.isUrgent(item);
      if (isUrgent || size > PROMPT_BYTES || hasBulk()) {
        const key = shape.keyOf(item);
        if (isUrgent && !isWaiting(key)) return void urgent.push(item);
        if (size > PROMPT_BYTES || bulk?.has(key) === true) {
          bulk ??= createBulkQueue(shape);
          return bulk.add(key, item, size, promptAdded);
        }
      }
      prompt.push(item);
      promptAdded++;
      promptBytes += size;
    },
    take(room) {
      let taken: Taken<T> | undefined;
      const large = hasBulk() ? bulk : undefined;
      if (large !== undefined && passedOver >= PATIENCE_FRAMES && urgent.length === 0) {
        taken = takeStarved(large, room);
      } else {
        taken = takeSmall(room);
        if (large !== undefined) {
          const free = room.free - taken.bytes - room.reserve;
          const turn = large.take({ ...room, free, idle: room.idle && taken.bytes === 0 }, promptAdded - prompt.length);
          if (turn.kind === "taken") {
            taken = { items: taken.items.concat(turn.items), piece: turn.piece, bytes: taken.bytes + turn.bytes };
          }
          // Counted only where small items went instead: without them large ones wait for nothing but the window.
          if (turn.kind !== "full") passedOver = 0;
          else if (taken.items.length > 0) passedOver++;
        }
      }
      return taken === undefined || (taken.items.length === 0 && taken.piece === undefined) ? undefined : taken;
    },
    wholeBytes: () => promptBytes + (bulk?.wholeBytes ?? 0),
    largeBytes: () => bulk?.largeBytes ?? 0,
    isEmpty: () => urgent.length === 0 && prompt.length === 0 && !hasBulk(),
  };
}
