import { hash } from "node:crypto";

/** The length of every hash of a tree, in bytes. */
export const HASH_BYTES = 32;

/** The root of the tree without leaves: SHA-256 of nothing (RFC 6962 §2.1). */
export const EMPTY_ROOT: Uint8Array = sha256(new Uint8Array(0));

const LEAF_PREFIX = 0x00;
const NODE_PREFIX = 0x01;
// Reused for each node, because allocating the input costs as much as hashing it; hashing is synchronous.
const nodeInput = Buffer.alloc(1 + 2 * HASH_BYTES, NODE_PREFIX);

/** SHA-256 of bytes: 32 bytes. */
export function sha256(bytes: Uint8Array): Uint8Array {
  // By way of a string, because that takes a third of the time of asking for a Buffer.
  return Buffer.from(hash("sha256", bytes, "latin1"), "latin1");
}

/** The hash of a leaf: SHA-256(0x00 || leaf), RFC 6962 §2.1. The prefix keeps a leaf from passing as a node. */
export function leafHash(leaf: Uint8Array): Uint8Array {
  const input = Buffer.allocUnsafe(1 + leaf.length);
  input[0] = LEAF_PREFIX;
  input.set(leaf, 1);
  return sha256(input);
}

/** The hash of an inner node: SHA-256(0x01 || left || right), RFC 6962 §2.1. Throws TypeError unless both have 32 bytes. */
export function nodeHash(left: Uint8Array, right: Uint8Array): Uint8Array {
  if (left.length !== HASH_BYTES || right.length !== HASH_BYTES) throw new TypeError("a node's hash has 32 bytes");
  nodeInput.set(left, 1);
  nodeInput.set(right, 1 + HASH_BYTES);
  return sha256(nodeInput);
}

/** True for 32 bytes: a value from the wire that may be used as a hash. */
export function isHash(value: unknown): value is Uint8Array {
  return value instanceof Uint8Array && value.length === HASH_BYTES;
}
