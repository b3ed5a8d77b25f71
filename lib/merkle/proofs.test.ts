import { describe, expect, it } from "vitest";
import { createFrontier } from "./frontier.ts";
import { EMPTY_ROOT, leafHash } from "./hash.ts";
import { consistencyPlan, foldPlan, inclusionPlan, isLeafIndex, isTreeSize, type NodeId } from "./plan.ts";
import { CT_CONSISTENCY, CT_INCLUSION, CT_LEAVES, hex } from "./testdata/ct-vectors.ts";
import { createTree } from "./tree.ts";
import { verifyConsistency, verifyInclusion } from "./verify.ts";

const SIZES = 64;

interface Log {
  leaves: Uint8Array[];
  roots: Uint8Array[];
  nodeAt: (id: NodeId) => Uint8Array;
}

function logOf(leafHashes: Uint8Array[]): Log {
  const nodes = new Map<string, Uint8Array>();
  const frontier = createFrontier();
  const roots = [frontier.root()];
  for (const leaf of leafHashes) {
    for (const node of frontier.append(leaf)) nodes.set(`${node.level}/${node.index}`, node.hash);
    roots.push(frontier.root());
  }
  return {
    leaves: leafHashes,
    roots,
    nodeAt: ({ level, index }) => nodes.get(`${level}/${index}`) ?? expect.fail(`${level}/${index} is not complete`),
  };
}

const log = logOf(Array.from({ length: SIZES }, (_, i) => leafHash(Buffer.from(`record ${i}`))));
const other = leafHash(Buffer.from("not in the log"));

function flipped(hash: Uint8Array): Uint8Array {
  const copy = Buffer.from(hash);
  copy[0] = (copy[0] ?? 0) ^ 1;
  return copy;
}

function root(size: number): Uint8Array {
  return log.roots[size] ?? EMPTY_ROOT;
}

function leaf(index: number): Uint8Array {
  return log.leaves[index] ?? EMPTY_ROOT;
}

// Every way to spoil a path that still looks like one.
function spoiltPaths(path: Uint8Array[]): Uint8Array[][] {
  return [
    path.slice(1),
    path.slice(0, -1),
    [...path, other],
    [other, ...path],
    path.toReversed(),
    ...path.map((hash, i) => path.with(i, flipped(hash))),
  ].filter((spoilt) => spoilt.map(hex).join() !== path.map(hex).join());
}

describe("inclusion proofs", () => {
  it("are the reference proofs", () => {
    const ct = logOf(CT_LEAVES.map(leafHash));
    for (const { index, size, path } of CT_INCLUSION) {
      expect(foldPlan(inclusionPlan(index, size), ct.nodeAt).map(hex)).toEqual(path);
    }
  });

  it("hold for every leaf of every size, and for no other leaf, index, size or root", () => {
    for (let size = 1; size <= SIZES; size++) {
      for (let index = 0; index < size; index++) {
        const path = foldPlan(inclusionPlan(index, size), log.nodeAt);
        expect(verifyInclusion(leaf(index), index, size, path, root(size))).toBe(true);
        expect(verifyInclusion(other, index, size, path, root(size))).toBe(false);
        expect(verifyInclusion(leaf(index), index, size, path, root(size - 1))).toBe(false);
        expect(verifyInclusion(leaf(index), index + 1, size, path, root(size))).toBe(false);
        expect(verifyInclusion(leaf(index), index - 1, size, path, root(size))).toBe(false);
      }
    }
  });

  it("do not hold with a path that was truncated, extended, reordered or changed", () => {
    for (const size of [1, 2, 3, 7, 8, 13, 33, 64]) {
      for (let index = 0; index < size; index++) {
        const path = foldPlan(inclusionPlan(index, size), log.nodeAt);
        const accepted = spoiltPaths(path).filter((spoilt) =>
          verifyInclusion(leaf(index), index, size, spoilt, root(size)),
        );
        expect(accepted).toEqual([]);
      }
    }
  });
});

describe("consistency proofs", () => {
  it("are the reference proofs", () => {
    const ct = logOf(CT_LEAVES.map(leafHash));
    for (const { from, to, path } of CT_CONSISTENCY) {
      expect(foldPlan(consistencyPlan(from, to), ct.nodeAt).map(hex)).toEqual(path);
    }
  });

  it("hold between every two sizes, and with no other root", () => {
    for (let to = 0; to <= SIZES; to++) {
      for (let from = 0; from <= to; from++) {
        const path = foldPlan(consistencyPlan(from, to), log.nodeAt);
        expect(verifyConsistency(from, to, path, root(from), root(to))).toBe(true);
        expect(verifyConsistency(from, to, path, flipped(root(from)), root(to))).toBe(false);
        if (from > 0) expect(verifyConsistency(from, to, path, root(from), flipped(root(to)))).toBe(false);
      }
    }
  });

  it("do not hold with a path that was truncated, extended, reordered or changed", () => {
    for (const [from, to] of [
      [1, 2],
      [3, 7],
      [4, 8],
      [6, 8],
      [7, 64],
      [32, 33],
      [31, 63],
      [0, 5],
      [9, 9],
    ] as const) {
      const path = foldPlan(consistencyPlan(from, to), log.nodeAt);
      const accepted = spoiltPaths(path).filter((spoilt) => verifyConsistency(from, to, spoilt, root(from), root(to)));
      expect(accepted).toEqual([]);
    }
  });

  it("do not hold for a log whose past was rewritten", () => {
    const rewritten = logOf(log.leaves.with(2, other));
    for (let from = 3; from < SIZES; from++) {
      const path = foldPlan(consistencyPlan(from, SIZES), rewritten.nodeAt);
      expect(verifyConsistency(from, SIZES, path, root(from), rewritten.roots[SIZES] ?? other)).toBe(false);
    }
  });
});

describe("plans", () => {
  it("read a number of nodes that grows with the depth of the tree, up to the largest size", () => {
    const size = Number.MAX_SAFE_INTEGER;
    expect(inclusionPlan(size - 1, size).flat().length).toBeLessThanOrEqual(106);
    expect(inclusionPlan(0, size).length).toBe(53);
    expect(consistencyPlan(2 ** 52 + 1, size).length).toBeLessThanOrEqual(54);
  });

  it("refuse sizes and indexes that no log has", () => {
    for (const bad of [-1, Number.NaN, 0.5, 2 ** 53, Number.POSITIVE_INFINITY, 8]) {
      expect(() => inclusionPlan(bad, 8)).toThrow(RangeError);
      expect(() => consistencyPlan(bad, 7)).toThrow(RangeError);
    }
  });

  it("are guarded by checks for values from the wire", () => {
    expect([0, 1, 2 ** 53 - 1].map(isTreeSize)).toEqual([true, true, true]);
    expect([-1, 0.5, Number.NaN, 2 ** 53, "1", 1n, null].map(isTreeSize)).toEqual(Array(7).fill(false));
    expect([isLeafIndex(0, 1), isLeafIndex(1, 1), isLeafIndex(-1, 1), isLeafIndex("0", 1)]).toEqual([
      true,
      false,
      false,
      false,
    ]);
  });
});

describe("verifying hostile input", () => {
  const bad = [-1, Number.NaN, 0.5, 2 ** 53, Number.POSITIVE_INFINITY];

  it("refuses numbers that are no index or size, without throwing", () => {
    for (const value of bad) {
      expect(verifyInclusion(leaf(0), value, 8, [], root(8))).toBe(false);
      expect(verifyInclusion(leaf(0), 0, value, [], root(8))).toBe(false);
      expect(verifyConsistency(value, 8, [], root(8), root(8))).toBe(false);
      expect(verifyConsistency(1, value, [], root(1), root(8))).toBe(false);
    }
    expect(verifyConsistency(8, 7, [], root(8), root(7))).toBe(false);
  });

  it("refuses hashes of the wrong length or kind, and huge paths, without throwing", () => {
    const short = other.subarray(1);
    const huge = Array.from({ length: 100_000 }, () => other);
    const notBytes = ["a".repeat(32)] as unknown as Uint8Array[];
    for (const path of [[short], huge, notBytes, [undefined] as unknown as Uint8Array[]]) {
      expect(verifyInclusion(leaf(0), 0, 2, path, root(2))).toBe(false);
      expect(verifyConsistency(1, 2, path, root(1), root(2))).toBe(false);
    }
    expect(verifyInclusion(short, 0, 1, [], short)).toBe(false);
    expect(verifyInclusion(leaf(0), 0, 2, null as unknown as Uint8Array[], root(2))).toBe(false);
  });

  it("accepts only the empty root for an empty old tree", () => {
    expect(verifyConsistency(0, 3, [], EMPTY_ROOT, root(3))).toBe(true);
    expect(verifyConsistency(0, 3, [], root(1), root(3))).toBe(false);
    expect(verifyConsistency(0, 3, [other], EMPTY_ROOT, root(3))).toBe(false);
  });

  it("does not take an inner node for a leaf", () => {
    const pair = createTree(log.leaves.slice(0, 2)).root;
    const path = foldPlan(inclusionPlan(0, 4), log.nodeAt);
    expect(verifyInclusion(pair, 0, 4, path.slice(1), root(4))).toBe(false);
  });
});
