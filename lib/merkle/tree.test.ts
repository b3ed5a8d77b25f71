import { describe, expect, it } from "vitest";
import { EMPTY_ROOT, leafHash, nodeHash } from "./hash.ts";
import { CT_LEAVES, CT_ROOTS, hex } from "./testdata/ct-vectors.ts";
import { createTree } from "./tree.ts";
import { verifyInclusion } from "./verify.ts";

const hashes = CT_LEAVES.map(leafHash);

describe("the root of a tree", () => {
  it("gives the reference roots of the Certificate Transparency tree", () => {
    const roots = CT_ROOTS.map((_, size) => hex(createTree(hashes.slice(0, size)).root));
    expect(roots).toEqual(CT_ROOTS);
  });

  it("gives SHA-256 of nothing for the empty tree", () => {
    expect(hex(EMPTY_ROOT)).toBe("e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  });
});

describe("createTree", () => {
  it("proves each of its leaves, whatever its size", () => {
    for (let size = 1; size <= 33; size++) {
      const leaves = Array.from({ length: size }, (_, i) => leafHash(Uint8Array.of(i)));
      const tree = createTree(leaves);
      const proven = leaves.map((leaf, index) => verifyInclusion(leaf, index, size, tree.path(index), tree.root));
      expect(proven).toEqual(leaves.map(() => true));
    }
  });

  it("refuses an index outside the tree", () => {
    expect(() => createTree(hashes).path(8)).toThrow(RangeError);
    expect(() => createTree([]).path(0)).toThrow(RangeError);
    expect(() => createTree(hashes).path(-1)).toThrow(RangeError);
  });
});

describe("nodeHash", () => {
  it("refuses hashes that are not 32 bytes long", () => {
    expect(() => nodeHash(EMPTY_ROOT.subarray(1), EMPTY_ROOT)).toThrow(TypeError);
  });

  it("differs from the hash of a leaf with the same bytes", () => {
    const pair = Buffer.concat([EMPTY_ROOT, EMPTY_ROOT]);
    expect(hex(leafHash(pair))).not.toBe(hex(nodeHash(EMPTY_ROOT, EMPTY_ROOT)));
  });
});
