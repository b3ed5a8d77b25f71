import { EMPTY_ROOT, nodeHash } from "./hash.ts";

/** A whole tree in memory: for the few leaves of a batch, not for a log. */
export interface Tree {
  /** The root over all leaves; EMPTY_ROOT without leaves. */
  root: Uint8Array;
  /** The inclusion proof of a leaf, from its sibling up. Throws RangeError for an index outside the tree. */
  path(index: number): Uint8Array[];
}

/** Builds the tree over leaf hashes (RFC 6962 §2.1). Hashes once per inner node; keeps the hashes given, uncopied. */
export function createTree(leafHashes: readonly Uint8Array[]): Tree {
  const levels = levelsOf(leafHashes);
  return {
    root: levels.at(-1)?.[0] ?? EMPTY_ROOT,
    path: (index) => pathOf(levels, index),
  };
}

type Level = readonly Uint8Array[];

function levelsOf(leafHashes: Level): Level[] {
  const levels = [leafHashes];
  for (let level = leafHashes; level.length > 1; ) {
    level = parentsOf(level);
    levels.push(level);
  }
  return levels;
}

// A last node without a sibling moves up as it is, which gives the same tree as splitting at the largest power of two.
function parentsOf(level: Level): Uint8Array[] {
  const parents: Uint8Array[] = [];
  level.forEach((hash, index) => {
    const left = index % 2 === 1 ? parents.pop() : undefined;
    parents.push(left ? nodeHash(left, hash) : hash);
  });
  return parents;
}

function pathOf(levels: readonly Level[], index: number): Uint8Array[] {
  if (levels[0]?.[index] === undefined) throw new RangeError("no such leaf in the tree");
  const path: Uint8Array[] = [];
  let position = index;
  for (const level of levels) {
    const sibling = level[position % 2 === 0 ? position + 1 : position - 1];
    if (sibling) path.push(sibling);
    position = Math.floor(position / 2);
  }
  return path;
}
