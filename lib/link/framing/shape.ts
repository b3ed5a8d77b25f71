import type { Framing } from "../../../gen/ts/reeve/common/v1/framing_pb.ts";

/**
 * What framing has to know of one direction's messages: `M` is the message on the wire, which holds items `T` and a
 * Framing.
 */
export interface Shape<M, T> {
  /** The items of a message, in order. */
  items(message: M): T[];
  framing(message: M): Framing | undefined;
  /** A message of these items. Without framing it is what a peer without framing sends. */
  build(items: T[], framing?: Framing): M;
  encode(item: T): Uint8Array;
  /** Throws where the bytes are no such item. */
  decode(bytes: Uint8Array): T;
  /**
   * About how many bytes the item's encoding has. Windows count in these, on both sides, so it must depend on nothing but
   * the item.
   */
  sizeOf(item: T): number;
  /** Items of the same key keep their order; others may overtake each other. */
  keyOf(item: T): string;
  /** True for what no window holds back, such as a cancel. A large item never is. */
  isUrgent(item: T): boolean;
}

/** Both directions, as one side sees them. */
export interface Shapes<Out, In> {
  // The items' type is the shape's own business; no caller sees one.
  // biome-ignore lint/suspicious/noExplicitAny: an existential type, which TypeScript cannot say
  out: Shape<Out, any>;
  // biome-ignore lint/suspicious/noExplicitAny: as above
  in: Shape<In, any>;
}
