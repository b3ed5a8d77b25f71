import { EMPTY_ROOT, isHash, nodeHash } from "./hash.ts";
import { edgePlan, isLeafIndex, isTreeSize } from "./plan.ts";

// A tree of 2^53 - 1 leaves has proofs of at most 54 hashes (a consistency proof has one more than the tree's depth).
const MAX_PATH = 54;

/**
 * True where the path proves that the leaf is at that index of the tree with that size and root (RFC 9162 §2.1.3.2).
 * Every argument may come from an attacker: anything malformed, too long or too short is false, and nothing throws.
 */
export function verifyInclusion(
  leafHash: Uint8Array,
  index: number,
  size: number,
  path: readonly Uint8Array[],
  root: Uint8Array,
): boolean {
  if (!isHash(leafHash) || !isHash(root) || !isLeafIndex(index, size) || !isPath(path)) return false;
  const walk = startWalk(index, size - 1);
  let hash = leafHash;
  for (const sibling of path) {
    if (walk.last === 0) return false;
    hash = isRightChild(walk) ? nodeHash(sibling, hash) : nodeHash(hash, sibling);
    climb(walk);
  }
  return walk.last === 0 && isSame(hash, root);
}

/**
 * True where the path proves that the tree with oldSize and oldRoot is a prefix of the tree with newSize and newRoot
 * (RFC 9162 §2.1.4.2). The empty tree is a prefix of every tree, by the empty path. Every argument may come from an
 * attacker: anything malformed, too long or too short is false, and nothing throws.
 */
export function verifyConsistency(
  oldSize: number,
  newSize: number,
  path: readonly Uint8Array[],
  oldRoot: Uint8Array,
  newRoot: Uint8Array,
): boolean {
  if (!isHash(oldRoot) || !isHash(newRoot) || !isPath(path)) return false;
  if (!isTreeSize(oldSize) || !isTreeSize(newSize) || oldSize > newSize) return false;
  if (oldSize === newSize) return path.length === 0 && isSame(oldRoot, newRoot);
  if (oldSize === 0) return path.length === 0 && isSame(oldRoot, EMPTY_ROOT);
  return isConsistent(oldSize, newSize, path, oldRoot, newRoot);
}

function isConsistent(
  oldSize: number,
  newSize: number,
  path: readonly Uint8Array[],
  oldRoot: Uint8Array,
  newRoot: Uint8Array,
): boolean {
  // A complete old tree is a node of the new one, so its root opens the path without being sent.
  const [first, ...rest] = edgePlan(oldSize).length === 1 ? [oldRoot, ...path] : path;
  if (!first || path.length === 0) return false;
  const walk = startWalk(oldSize - 1, newSize - 1);
  while (isOdd(walk.at)) climbOne(walk);
  let oldHash = first;
  let newHash = first;
  for (const sibling of rest) {
    if (walk.last === 0) return false;
    if (isRightChild(walk)) oldHash = nodeHash(sibling, oldHash);
    newHash = isRightChild(walk) ? nodeHash(sibling, newHash) : nodeHash(newHash, sibling);
    climb(walk);
  }
  return walk.last === 0 && isSame(oldHash, oldRoot) && isSame(newHash, newRoot);
}

// The walk from a node up to the root: `at` and `last` are the places of the node and of its level's last node
// ("fn" and "sn" in the RFC).
interface Walk {
  at: number;
  last: number;
}

function startWalk(at: number, last: number): Walk {
  return { at, last };
}

// The last node of a level is a right child too: where it has no sibling there, it has one further up.
function isRightChild(walk: Walk): boolean {
  return isOdd(walk.at) || walk.at === walk.last;
}

function climb(walk: Walk): void {
  // A last node without a sibling moves up as it is, level by level, until it is a right child.
  if (walk.at === walk.last) while (!isOdd(walk.at) && walk.at !== 0) climbOne(walk);
  climbOne(walk);
}

function climbOne(walk: Walk): void {
  walk.at = Math.floor(walk.at / 2);
  walk.last = Math.floor(walk.last / 2);
}

function isOdd(value: number): boolean {
  return value % 2 === 1;
}

function isPath(path: unknown): path is readonly Uint8Array[] {
  return Array.isArray(path) && path.length <= MAX_PATH && path.every(isHash);
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
