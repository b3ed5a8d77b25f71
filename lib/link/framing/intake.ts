import type { Framing, Piece } from "../../../gen/ts/reeve/common/v1/framing_pb.ts";
import {
  MAX_ITEM_BYTES,
  MAX_UNFINISHED_BYTES,
  MAX_UNFINISHED_ITEMS,
  PIECE_BYTES,
  WINDOW_SLACK_BYTES,
} from "./limits.ts";
import { malformed, tooMuch } from "./link-faults.ts";
import type { Shape } from "./shape.ts";

/** What came in a frame, for the reader. */
export interface Arrived<M> {
  message: M;
  /** Charged to the window until the reader has taken it. */
  charge: number;
  /** Of items that came in pieces: their bytes, which were charged as they came. */
  assembled: number;
}

/** One direction's frames as they come in. */
export interface Intake<M> {
  /**
   * Checks a frame and returns what it holds for the reader; undefined where that is nothing. Throws INVALID_INPUT for a
   * gap in the numbers or bytes that are no item, INPUT_TOO_LARGE for more than the window.
   */
  take(message: M, framing: Framing): Arrived<M> | undefined;
  /** The reader has dealt with it. */
  consumed(arrived: Arrived<M>): void;
  /** Nothing can be acknowledged any more: from now on the other side keeps to no window. */
  unbounded(): void;
  /** Bytes that the other side may count as taken. */
  consumedBytes(): number;
  /** True where an item has come in part. */
  isUnfinished(): boolean;
}

/** Counts what comes in. What waits for the reader stays bounded by the window and one set of unfinished items. */
export function createIntake<M, T>(shape: Shape<M, T>, windowBytes: number): Intake<M> {
  /** Made when the first piece comes. */
  let assembler: Assembler | undefined;
  let limitBytes = windowBytes + WINDOW_SLACK_BYTES;
  let number = 0;
  let receivedBytes = 0;
  let consumedBytes = 0;
  /** Bytes of pieces that were put together or wait for the rest, and are not acknowledged yet. */
  let heldBytes = 0;
  /** Bytes of assembled items that the reader has not taken. */
  let assembledBytes = 0;

  const release = (): void => {
    // Where whole items pile up, their pieces' bytes are held back, so that the pile stays bounded.
    if (assembledBytes > windowBytes) return;
    consumedBytes += heldBytes;
    heldBytes = 0;
  };
  const assemble = (framing: Framing): { items: T[]; bytes: number } => {
    const items: T[] = [];
    let bytes = 0;
    assembler ??= createAssembler();
    for (const piece of framing.pieces) {
      receivedBytes += piece.data.length;
      heldBytes += piece.data.length;
      const whole = assembler.add(piece);
      if (whole === undefined) continue;
      bytes += whole.length;
      items.push(decode(shape, whole));
    }
    assembledBytes += bytes;
    release();
    return { items, bytes };
  };

  return {
    take(message, framing) {
      const expected = number + 1;
      if (framing.number !== BigInt(expected)) {
        const text = `frame ${framing.number} came where ${expected} was due`;
        throw malformed("framing.number", "gap", text);
      }
      number = expected;
      const items = shape.items(message);
      let charge = 0;
      for (const item of items) charge += shape.sizeOf(item);
      receivedBytes += charge;
      const whole = framing.pieces.length === 0 ? undefined : assemble(framing);
      if (receivedBytes - consumedBytes > limitBytes) {
        throw tooMuch("framing.window_bytes", windowBytes, "the other side sent more than its window holds");
      }
      if (whole === undefined || whole.items.length === 0) {
        return items.length === 0 ? undefined : { message, charge, assembled: 0 };
      }
      // What came whole is older than what was finished in the same frame.
      return { message: shape.build(items.concat(whole.items)), charge, assembled: whole.bytes };
    },
    consumed({ charge, assembled }) {
      consumedBytes += charge;
      assembledBytes -= assembled;
      release();
    },
    unbounded() {
      limitBytes = Infinity;
    },
    consumedBytes: () => consumedBytes,
    isUnfinished: () => assembler !== undefined && assembler.waitingBytes > 0,
  };
}

/** Puts items together from their pieces. */
interface Assembler {
  /**
   * The item's bytes when this was its last piece. Throws INPUT_TOO_LARGE for more than a link takes, and INVALID_INPUT
   * for a piece without a byte.
   */
  add(piece: Piece): Uint8Array | undefined;
  /** Bytes that wait for the rest of their item. */
  readonly waitingBytes: number;
}

/** Keeps no more than MAX_UNFINISHED_BYTES and _ITEMS, whatever the other side sends. */
function createAssembler(): Assembler {
  const unfinished = new Map<number, { parts: Uint8Array[]; bytes: number }>();
  let waitingBytes = 0;
  return {
    add({ message, data, last }) {
      if (data.length === 0) throw malformed("framing.pieces", "empty", "a piece holds nothing");
      if (data.length > PIECE_BYTES) throw tooMuch("framing.pieces", PIECE_BYTES, "a piece is too large");
      const item = unfinished.get(message) ?? { parts: [], bytes: 0 };
      item.bytes += data.length;
      waitingBytes += data.length;
      if (item.bytes > MAX_ITEM_BYTES)
        throw tooMuch("framing.pieces", MAX_ITEM_BYTES, "an item in pieces is too large");
      if (waitingBytes > MAX_UNFINISHED_BYTES) {
        throw tooMuch("framing.pieces", MAX_UNFINISHED_BYTES, "too much is under way in pieces");
      }
      item.parts.push(data);
      if (!last) {
        unfinished.set(message, item);
        if (unfinished.size <= MAX_UNFINISHED_ITEMS) return undefined;
        throw tooMuch("framing.pieces", MAX_UNFINISHED_ITEMS, "too many items are under way in pieces");
      }
      unfinished.delete(message);
      waitingBytes -= item.bytes;
      return Buffer.concat(item.parts, item.bytes);
    },
    get waitingBytes() {
      return waitingBytes;
    },
  };
}

function decode<T>(shape: Shape<unknown, T>, bytes: Uint8Array): T {
  try {
    return shape.decode(bytes);
  } catch (cause) {
    throw malformed("framing.pieces", "decode", "the pieces are no item together", cause);
  }
}
