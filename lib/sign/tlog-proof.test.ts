import { describe, expect, it } from "vitest";
import { leafHash } from "../merkle/hash.ts";
import { createTree } from "../merkle/tree.ts";
import {
  type Checkpoint,
  type CheckpointResult,
  formatCheckpoint,
  parseCheckpoint,
  signCheckpoint,
  verifyCheckpoint,
} from "./checkpoint.ts";
import { generateSigningKey } from "./keys.ts";
import { noteKeyOf, signNote } from "./note.ts";
import { formatTlogProof, parseTlogProof, type TlogProofResult, verifyTlogProof } from "./tlog-proof.ts";

const ORIGIN = "home.example/device/laptop";
const key = generateSigningKey();
const logKey = noteKeyOf(ORIGIN, key);
const leaves = Array.from({ length: 5 }, (_, i) => leafHash(Buffer.from(`record ${i}`)));
const tree = createTree(leaves);
const head: Checkpoint = { origin: ORIGIN, size: 5, root: tree.root };
const leaf = leaves[2] ?? tree.root;
const receipt = formatTlogProof({ index: 2, path: tree.path(2), checkpoint: signCheckpoint(head, key) });

function kindOf(result: CheckpointResult | TlogProofResult): string {
  return result.ok ? "ok" : result.kind;
}

describe("checkpoints", () => {
  it("are read and written as in the specification", () => {
    const text = "example.com/behind-the-sofa\n20852163\nCsUYapGGPo4dkMgIAUqom/Xajj7h2fB2MPA3j2jxq2I=\n";
    const parsed = parseCheckpoint(text) ?? expect.fail("the example was refused");
    expect([parsed.origin, parsed.size]).toEqual(["example.com/behind-the-sofa", 20852163]);
    expect(formatCheckpoint(parsed)).toBe(text);
  });

  it("are given out where the log's key signed them", () => {
    const result = verifyCheckpoint(signCheckpoint(head, key), logKey);
    expect(result.ok && [result.checkpoint.origin, result.checkpoint.size]).toEqual([ORIGIN, 5]);
  });

  it("are refused where the key signed another log's head, or another kind of note", () => {
    const elsewhere = formatCheckpoint({ ...head, origin: "home.example/device/desktop" });
    expect(kindOf(verifyCheckpoint(signNote(elsewhere, ORIGIN, key), logKey))).toBe("wrong_type");
    expect(kindOf(verifyCheckpoint(signNote("a note\n", ORIGIN, key), logKey))).toBe("wrong_type");
  });

  it("are refused where another key signed, or the head was changed", () => {
    const strange = signCheckpoint(head, generateSigningKey());
    expect(kindOf(verifyCheckpoint(strange, logKey))).toBe("unknown_key");
    expect(kindOf(verifyCheckpoint(signCheckpoint(head, key).replace("\n5\n", "\n4\n"), logKey))).toBe("bad_signature");
  });

  it("are not read in any other form", () => {
    const text = formatCheckpoint(head);
    const root = Buffer.from(head.root).toString("base64");
    const malformed = [
      "",
      text.slice(0, -1),
      `${text}\n`,
      `${text}extension\n`,
      text.replace("\n5\n", "\n05\n"),
      text.replace("\n5\n", "\n+5\n"),
      text.replace("\n5\n", "\n-5\n"),
      text.replace("\n5\n", "\n5.0\n"),
      text.replace("\n5\n", "\n5e3\n"),
      text.replace("\n5\n", "\n 5\n"),
      text.replace("\n5\n", "\n9007199254740992\n"),
      text.replace("\n5\n", "\n99999999999999999999\n"),
      text.replace(root, root.slice(0, -1)),
      text.replace(root, Buffer.alloc(31).toString("base64")),
      text.replace(root, Buffer.from(head.root).toString("hex")),
      text.replace(ORIGIN, ""),
      text.replace(ORIGIN, "two words"),
    ];
    expect(malformed.map(parseCheckpoint)).toEqual(malformed.map(() => undefined));
    expect(parseCheckpoint(text.replace("\n5\n", "\n9007199254740991\n"))?.size).toBe(Number.MAX_SAFE_INTEGER);
  });

  it("are not written for what no log can have", () => {
    for (const wrong of [{ origin: "a b" }, { size: -1 }, { size: 0.5 }, { root: new Uint8Array(31) }]) {
      expect(() => formatCheckpoint({ ...head, ...wrong })).toThrow(TypeError);
    }
  });
});

describe("receipts", () => {
  it("have the text of the specification", () => {
    const path = tree.path(2).map((hash) => Buffer.from(hash).toString("base64"));
    expect(receipt.split("\n").slice(0, 6)).toEqual(["c2sp.org/tlog-proof@v1", "index 2", ...path, ""]);
    expect(receipt.endsWith(signCheckpoint(head, key))).toBe(true);
  });

  it("verify offline with nothing but the record and the log's key", () => {
    const result = verifyTlogProof(receipt, leaf, logKey);
    expect(result.ok && [result.index, result.checkpoint.size]).toEqual([2, 5]);
  });

  it("verify for a log of one record, whose path is empty", () => {
    const single = createTree(leaves.slice(0, 1));
    const checkpoint = signCheckpoint({ origin: ORIGIN, size: 1, root: single.root }, key);
    const text = formatTlogProof({ index: 0, path: [], checkpoint });
    expect(kindOf(verifyTlogProof(text, leaves[0] ?? leaf, logKey))).toBe("ok");
  });

  it("carry extra data that is not trusted", () => {
    const proof = parseTlogProof(receipt) ?? expect.fail("the receipt was refused");
    const extra = Buffer.from("call 7");
    const text = formatTlogProof({ ...proof, extra });
    expect(text.split("\n")[1]).toBe("extra Y2FsbCA3");
    expect(Buffer.from(parseTlogProof(text)?.extra ?? []).toString()).toBe("call 7");
    expect(kindOf(verifyTlogProof(text, leaf, logKey))).toBe("ok");
    expect(formatTlogProof({ ...proof, extra: new Uint8Array(0) })).toBe(receipt);
  });

  it("are refused for another record, index, path or log", () => {
    const proof = parseTlogProof(receipt) ?? expect.fail("the receipt was refused");
    const path = tree.path(2);
    expect(kindOf(verifyTlogProof(receipt, leaves[3] ?? leaf, logKey))).toBe("bad_signature");
    expect(kindOf(verifyTlogProof(formatTlogProof({ ...proof, index: 3 }), leaf, logKey))).toBe("bad_signature");
    expect(kindOf(verifyTlogProof(formatTlogProof({ ...proof, index: 5 }), leaf, logKey))).toBe("bad_signature");
    expect(kindOf(verifyTlogProof(formatTlogProof({ ...proof, path: path.slice(1) }), leaf, logKey))).toBe(
      "bad_signature",
    );
    expect(kindOf(verifyTlogProof(receipt, leaf, noteKeyOf("elsewhere", key)))).toBe("unknown_key");
  });

  it("are not read in any other form", () => {
    const hash = Buffer.from(tree.path(2)[0] ?? []).toString("base64");
    const malformed = [
      "",
      "\n\n",
      receipt.replace("@v1", "@v2"),
      receipt.replace("index 2", "index 02"),
      receipt.replace("index 2", "index -2"),
      receipt.replace("index 2", "index 2 "),
      receipt.replace("index 2", "index 9007199254740992"),
      receipt.replace("index 2\n", ""),
      receipt.replace("index 2", "extra \nindex 2"),
      receipt.replace("index 2", "extra a b\nindex 2"),
      receipt.replace("index 2", "extra YQ\nindex 2"),
      receipt.replace("index 2", "extra YQ==\nextra YQ==\nindex 2"),
      receipt.replace(hash, `${hash.slice(0, -2)}==`),
      receipt.replace(hash, `${hash} `),
      receipt.replaceAll("\n", "\r\n"),
      `${"x".repeat(200_000)}${receipt}`,
    ];
    expect(malformed.map((text) => kindOf(verifyTlogProof(text, leaf, logKey)))).toEqual(
      malformed.map(() => "malformed"),
    );
  });

  it("are refused for paths that no tree has, however long", () => {
    const proof = parseTlogProof(receipt) ?? expect.fail("the receipt was refused");
    const path = Array.from({ length: 1000 }, () => tree.root);
    expect(kindOf(verifyTlogProof(formatTlogProof({ ...proof, path }), leaf, logKey))).toBe("bad_signature");
    expect(() => formatTlogProof({ ...proof, path: [new Uint8Array(31)] })).toThrow(TypeError);
    expect(() => formatTlogProof({ ...proof, index: -1 })).toThrow(TypeError);
  });

  it("are refused after any change of any byte, and every truncation", () => {
    const bytes = Buffer.from(receipt);
    const accepted: number[] = [];
    bytes.forEach((byte, i) => {
      for (const change of [1, 0x20, 0x80]) {
        const text = Buffer.from(bytes)
          .fill(byte ^ change, i, i + 1)
          .toString();
        if (verifyTlogProof(text, leaf, logKey).ok) accepted.push(i);
      }
      if (verifyTlogProof(bytes.subarray(0, i).toString(), leaf, logKey).ok) accepted.push(i);
    });
    expect(accepted).toEqual([]);
  });
});
