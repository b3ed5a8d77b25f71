import { EMPTY_ROOT, nodeHash } from "./hash.ts";

/** The place of a complete subtree: its leaves are [index * 2^level, (index + 1) * 2^level). Level 0 is a leaf. */
export interface NodeId {
  level: number;
  index: number;
}

/**
 * Which stored nodes a proof is made of: one entry for each hash of the proof, in the proof's order. An entry is one
 * complete subtree, or the several that make up the ragged right side of the tree, left to right.
 *
 * A plan is made without a store, so that any store can load `plan.flat()` in one query, and then `foldPlan` it. It
 * names at most two nodes for each level of the tree.
 */
export type ProofPlan = readonly (readonly NodeId[])[];

/** True for a number of leaves: a whole number from 0 to 2^53 - 1. For values from the wire. */
export function isTreeSize(size: unknown): size is number {
  return Number.isSafeInteger(size) && (size as number) >= 0;
}

/** True where a tree of that size has a leaf at that index. For values from the wire. */
export function isLeafIndex(index: unknown, size: unknown): index is number {
  return isTreeSize(index) && isTreeSize(size) && index < size;
}

/**
 * The plan of the proof that the leaf at index is in the tree of that size (RFC 6962 §2.1.1, PATH).
 * Throws RangeError unless `isLeafIndex(index, size)`.
 */
export function inclusionPlan(index: number, size: number): ProofPlan {
  if (!isLeafIndex(index, size)) throw new RangeError(`no leaf ${String(index)} in a tree of ${size}`);
  const plan: NodeId[][] = [];
  let start = 0;
  let end = size;
  while (end - start > 1) {
    const middle = start + splitOf(end - start);
    const goesLeft = index < middle;
    plan.push(goesLeft ? nodesOf(middle, end) : nodesOf(start, middle));
    if (goesLeft) end = middle;
    else start = middle;
  }
  return plan.reverse();
}

/**
 * The plan of the proof that the tree of oldSize is a prefix of the tree of newSize (RFC 6962 §2.1.2, PROOF).
 * Empty where the sizes are equal or the old tree is empty. Throws RangeError unless 0 <= oldSize <= newSize.
 */
export function consistencyPlan(oldSize: number, newSize: number): ProofPlan {
  if (!isTreeSize(oldSize) || !isTreeSize(newSize) || oldSize > newSize) {
    throw new RangeError(`a tree of ${oldSize} is no prefix of a tree of ${newSize}`);
  }
  if (oldSize === 0) return [];
  const plan: NodeId[][] = [];
  let start = 0;
  let end = newSize;
  while (end !== oldSize) {
    const middle = start + splitOf(end - start);
    const goesLeft = oldSize <= middle;
    plan.push(goesLeft ? nodesOf(middle, end) : nodesOf(start, middle));
    if (goesLeft) end = middle;
    else start = middle;
  }
  // Left out where the old tree is itself the node arrived at: the verifier has its root already.
  if (start !== 0) plan.push(nodesOf(start, end));
  return plan.reverse();
}

/**
 * The nodes on the right edge of the tree of that size, left to right: what `createFrontier` and `foldEdge` need.
 * Throws RangeError unless `isTreeSize(size)`.
 */
export function edgePlan(size: number): NodeId[] {
  if (!isTreeSize(size)) throw new RangeError(`no tree has the size ${String(size)}`);
  return nodesOf(0, size);
}

/** Makes the proof of a plan. nodeAt gives the stored hash of a node; what it throws, this throws. */
export function foldPlan(plan: ProofPlan, nodeAt: (id: NodeId) => Uint8Array): Uint8Array[] {
  return plan.map((nodes) => foldEdge(nodes.map(nodeAt)));
}

/** The root over the nodes of a right edge, left to right; EMPTY_ROOT for none. */
export function foldEdge(edge: readonly Uint8Array[]): Uint8Array {
  if (edge.length === 0) return EMPTY_ROOT;
  return edge.reduceRight((right, left) => nodeHash(left, right));
}

// The largest power of two below the size. By arithmetic, because bit operations end at 32 bits.
function splitOf(size: number): number {
  let split = 1;
  while (split * 2 < size) split *= 2;
  return split;
}

// The complete subtrees of [start, end), where start is a multiple of a power of two that is not below end - start.
function nodesOf(start: number, end: number): NodeId[] {
  const nodes: NodeId[] = [];
  let width = 1;
  let level = 0;
  for (; width * 2 <= end - start; level++) width *= 2;
  for (let at = start; at < end; width /= 2, level--) {
    if (at + width > end) continue;
    nodes.push({ level, index: at / width });
    at += width;
  }
  return nodes;
}
