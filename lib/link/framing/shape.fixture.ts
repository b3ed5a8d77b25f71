import type { Framing } from "../../../gen/ts/reeve/common/v1/framing_pb.ts";
import type { Shape, Shapes } from "./shape.ts";

/** An item for tests: the `number`th of its key. */
export interface Toy {
  key: string;
  number: number;
  size: number;
  urgent?: boolean;
}

/** A message of them. */
export interface ToyFrame {
  toys: Toy[];
  framing?: Framing;
}

/** Toys that take as many bytes as they say. */
export const toyShape: Shape<ToyFrame, Toy> = {
  items: ({ toys }) => toys,
  framing: ({ framing }) => framing,
  build: (toys, framing) => (framing === undefined ? { toys } : { toys, framing }),
  encode(toy) {
    const bytes = Buffer.alloc(toy.size, " ");
    bytes.write(JSON.stringify(toy));
    return bytes;
  },
  decode: (bytes) => JSON.parse(Buffer.from(bytes).toString()) as Toy,
  sizeOf: ({ size }) => size,
  keyOf: ({ key }) => key,
  isUrgent: ({ urgent }) => urgent === true,
};

/** Toys both ways. */
export const toyShapes: Shapes<ToyFrame, ToyFrame> = { out: toyShape, in: toyShape };

/** A toy of 100 bytes, or as many as are wanted. */
export function toy(key: string, number = 0, size = 100): Toy {
  return { key, number, size };
}

/** The items' keys, in order. */
export function keysOf(items: readonly Toy[]): string[] {
  return items.map(({ key }) => key);
}
