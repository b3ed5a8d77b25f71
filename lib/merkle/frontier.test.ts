import { describe, expect, it } from "vitest";
import { createFrontier } from "./frontier.ts";
import { leafHash } from "./hash.ts";
import { edgePlan, foldEdge } from "./plan.ts";
import { CT_LEAVES, CT_ROOTS, hex } from "./testdata/ct-vectors.ts";
import { createTree } from "./tree.ts";

const leaves = Array.from({ length: 100 }, (_, i) => leafHash(Buffer.from(`record ${i}`)));

describe("createFrontier", () => {
  it("has the reference root after each append", () => {
    const frontier = createFrontier();
    const roots = [hex(frontier.root())];
    for (const leaf of CT_LEAVES) {
      frontier.append(leafHash(leaf));
      roots.push(hex(frontier.root()));
    }
    expect(roots).toEqual(CT_ROOTS);
  });

  it("returns each complete subtree once, when its last leaf arrives", () => {
    const frontier = createFrontier();
    const seen = new Map<string, string>();
    leaves.forEach((leaf, i) => {
      for (const node of frontier.append(leaf)) {
        const last = (node.index + 1) * 2 ** node.level - 1;
        expect(last).toBe(i);
        expect(seen.has(`${node.level}/${node.index}`)).toBe(false);
        seen.set(`${node.level}/${node.index}`, hex(node.hash));
        expect(hex(node.hash)).toBe(hex(createTree(leaves.slice(last + 1 - 2 ** node.level, last + 1)).root));
      }
    });
    expect(seen.size).toBe(100 + 50 + 25 + 12 + 6 + 3 + 1);
  });

  it("goes on from its state, and from stored nodes, as if it had never stopped", () => {
    const nodes = new Map<string, Uint8Array>();
    const frontier = createFrontier();
    leaves.forEach((leaf, size) => {
      const edge = edgePlan(size).map((id) => nodes.get(`${id.level}/${id.index}`) ?? new Uint8Array());
      expect(hex(foldEdge(edge))).toBe(hex(frontier.root()));
      const restarted = createFrontier({ size, edge });
      for (const node of frontier.append(leaf)) nodes.set(`${node.level}/${node.index}`, node.hash);
      restarted.append(leaf);
      expect(hex(restarted.root())).toBe(hex(frontier.root()));
      expect(restarted.state()).toEqual(frontier.state());
    });
  });

  it("keeps a state that was taken, whatever is appended afterwards", () => {
    const frontier = createFrontier();
    for (const leaf of leaves.slice(0, 7)) frontier.append(leaf);
    const before = frontier.state();
    const root = hex(frontier.root());
    frontier.append(leaves[7] ?? new Uint8Array());
    const again = createFrontier(before);
    expect([again.size, hex(again.root())]).toEqual([7, root]);
  });

  it("appends at a size beyond 32 bits", () => {
    const size = 2 ** 40 + 1;
    const edge = edgePlan(size).map((_, i) => leafHash(Uint8Array.of(i)));
    const nodes = createFrontier({ size, edge }).append(leafHash(Uint8Array.of(9)));
    expect(nodes.map(({ level, index }) => [level, index])).toEqual([
      [0, 2 ** 40 + 1],
      [1, 2 ** 39],
    ]);
  });

  it("refuses a state that does not fit its size", () => {
    const hash = leafHash(Uint8Array.of(1));
    expect(() => createFrontier({ size: 3, edge: [hash] })).toThrow(RangeError);
    expect(() => createFrontier({ size: 1, edge: [hash.subarray(1)] })).toThrow(RangeError);
    expect(() => createFrontier({ size: -1, edge: [] })).toThrow(RangeError);
    expect(() => createFrontier({ size: 2 ** 53, edge: [hash] })).toThrow(RangeError);
  });
});
