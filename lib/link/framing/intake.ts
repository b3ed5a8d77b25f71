import type { Framing } from "../../../gen/ts/reeve/common/v1/framing_pb.ts";
import { createAssembler } from "./assembler.ts";
import { WINDOW_SLACK_BYTES } from "./limits.ts";
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
  /** The other side will not hear what was taken: from now on it keeps to no window. */
  unbounded(): void;
  /** Bytes that the other side may count as taken. */
  readonly consumedBytes: number;
  /** True where an item has come in part. */
  readonly isUnfinished: boolean;
}

/** Counts what comes in. What waits for the reader stays bounded by the window and one set of unfinished items. */
export function createIntake<M, T>(shape: Shape<M, T>, windowBytes: number): Intake<M> {
  const assembler = createAssembler();
  let limitBytes = windowBytes + WINDOW_SLACK_BYTES;
  let number = 0;
  let receivedBytes = 0;
  let consumedBytes = 0;
  /** Bytes of pieces that were put together or wait for the rest, and are not told as taken yet. */
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
    get consumedBytes() {
      return consumedBytes;
    },
    get isUnfinished() {
      return assembler.waitingBytes > 0;
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
