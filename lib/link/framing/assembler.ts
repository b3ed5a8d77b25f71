import type { Piece } from "../../../gen/ts/reeve/common/v1/framing_pb.ts";
import { MAX_ITEM_BYTES, MAX_UNFINISHED_BYTES, MAX_UNFINISHED_ITEMS, PIECE_BYTES } from "./limits.ts";
import { malformed, tooMuch } from "./link-faults.ts";

/** Puts items together from their pieces. */
export interface Assembler {
  /**
   * The item's bytes when this was its last piece. Throws INPUT_TOO_LARGE for more than a link takes, and INVALID_INPUT
   * for a piece without a byte.
   */
  add(piece: Piece): Uint8Array | undefined;
  /** Bytes that wait for the rest of their item. */
  readonly waitingBytes: number;
}

/** Keeps no more than MAX_UNFINISHED_BYTES and _ITEMS, whatever the other side sends. */
export function createAssembler(): Assembler {
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
