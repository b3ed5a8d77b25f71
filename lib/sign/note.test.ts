import { describe, expect, it } from "vitest";
import { generateSigningKey, signingKeyFromPem } from "./keys.ts";
import { formatVkey, type NoteKey, noteKeyOf, parseVkey, signNote, verifyNote } from "./note.ts";

// The example of the reference implementation, https://pkg.go.dev/golang.org/x/mod/sumdb/note.
const VKEY = "PeterNeumann+c74f20a3+ARpc2QcUPDhMQegwxbzhKqiBfsVkmqq/LDE4izWy10TW";
const SEED = Buffer.from("AYEKFALVFGyNhPJEMzD1QIDr+Y7hfZx09iUvxdXHKDFz", "base64").subarray(1);
const TEXT = "If you think cryptography is the answer to your problem,\nthen you don't know what your problem is.\n";
const LINE =
  "— PeterNeumann x08go/ZJkuBS9UG/SffcvIAQxVBtiFupLLr8pAcElZInNIuGUgYN1FFYC2pZSNXgKvqfqdngotpRZb6KE6RyyBwJnAM=\n";
const NOTE = `${TEXT}\n${LINE}`;

const peter = signingKeyFromPem(
  `-----BEGIN PRIVATE KEY-----\n${Buffer.concat([
    Buffer.from("302e020100300506032b657004220420", "hex"),
    SEED,
  ]).toString("base64")}\n-----END PRIVATE KEY-----\n`,
);
const verifier = noteKeyOf("PeterNeumann", peter);
const stranger = generateSigningKey();

function kindOf(note: string, key: NoteKey = verifier): string {
  const result = verifyNote(note, key);
  return result.ok ? "ok" : result.kind;
}

describe("signNote", () => {
  it("writes the reference note byte for byte", () => {
    expect(signNote(TEXT, "PeterNeumann", peter)).toBe(NOTE);
  });

  it("refuses texts and names that a note cannot carry", () => {
    for (const text of ["", "no newline", "tab\there\n", "bell\u0007\n", "escape\u009b\n", "half \ud800\n", "a\r\n"]) {
      expect(() => signNote(text, "name", peter)).toThrow(TypeError);
    }
    for (const name of ["", "a b", "a+b", "a\u00a0b", "a\u2003b", "a\u0085b", "a\nb", "a\u0000", "\ud800"]) {
      expect(() => signNote(TEXT, name, peter)).toThrow(TypeError);
    }
  });
});

describe("verifier keys", () => {
  it("are written and read as in the reference", () => {
    expect(formatVkey(verifier)).toBe(VKEY);
    expect(parseVkey(VKEY)?.key.keyId).toBe(peter.keyId);
    expect(Buffer.from(parseVkey(VKEY)?.keyHash ?? []).toString("hex")).toBe("c74f20a3");
  });

  it("are refused after any change of any character, and in every part", () => {
    const accepted: string[] = [];
    for (let i = 0; i < VKEY.length; i++) {
      const next = String.fromCharCode(VKEY.charCodeAt(i) + 1);
      for (const text of [VKEY.slice(0, i) + next + VKEY.slice(i + 1), VKEY.slice(0, i), VKEY.slice(i + 1)]) {
        if (parseVkey(text)) accepted.push(text);
      }
    }
    expect(accepted).toEqual([]);
    expect(parseVkey(VKEY.replace("c74f20a3", "C74F20A3"))).toBeUndefined();
    expect(parseVkey(`${VKEY}\n`)).toBeUndefined();
  });
});

describe("verifyNote", () => {
  it("gives out the text of the reference note", () => {
    const key = parseVkey(VKEY) ?? expect.fail("the key was refused");
    expect(verifyNote(NOTE, key)).toEqual({ ok: true, text: TEXT });
  });

  it("keeps blank lines and signature-like lines inside the text", () => {
    const text = `a\n\n${LINE}\nb\n`;
    expect(verifyNote(signNote(text, "PeterNeumann", peter), verifier)).toEqual({ ok: true, text });
  });

  it("ignores the signatures of others, also of another kind", () => {
    const witness = `— witness.example/w1 ${Buffer.alloc(76, 7).toString("base64")}\n`;
    const other = signNote(TEXT, "other", stranger).slice(TEXT.length + 1);
    expect(kindOf(NOTE + witness + other)).toBe("ok");
    expect(kindOf(`${TEXT}\n${witness}${other}${LINE}`)).toBe("ok");
    expect(kindOf(`${TEXT}\n${witness}${other}`)).toBe("unknown_key");
  });

  it("distinguishes an unknown name, an unknown key and a bad signature", () => {
    expect(kindOf(NOTE.replace("— PeterNeumann", "— PeterNewman"))).toBe("unknown_key");
    expect(kindOf(signNote(TEXT, "PeterNeumann", stranger))).toBe("unknown_key");
    expect(kindOf(NOTE.replace("answer", "question"))).toBe("bad_signature");
  });

  it("refuses two signatures under the same key", () => {
    expect(kindOf(NOTE + LINE)).toBe("malformed");
  });

  it("refuses a signature of another length under its key", () => {
    const bytes = Buffer.from(LINE.slice("— PeterNeumann ".length), "base64");
    const short = `${TEXT}\n— PeterNeumann ${bytes.subarray(0, -1).toString("base64")}\n`;
    expect(kindOf(short)).toBe("bad_signature");
  });

  it("refuses malformed notes without throwing", () => {
    const malformed = [
      "",
      "\n",
      "\n\n",
      TEXT,
      `${TEXT}\n`,
      LINE,
      `\n${LINE}`,
      NOTE.slice(0, -1),
      `${NOTE}\n`,
      NOTE.replace("—", "-"),
      NOTE.replace("— ", "—  "),
      NOTE.replaceAll("\n", "\r\n"),
      NOTE.replace("answer", "ans\twer"),
      NOTE.replace("answer", "\ud800"),
      `${TEXT}\n— PeterNeumann x08go\n`,
      `${TEXT}\n— PeterNeumann x08gow==\n`,
      `${NOTE}— broken\n`,
      `${TEXT}\n${`— other ${Buffer.alloc(68).toString("base64")}\n`.repeat(65)}`,
      `${"x".repeat(70_000)}\n\n${LINE}`,
    ];
    expect(malformed.map((note) => kindOf(note))).toEqual(malformed.map(() => "malformed"));
  });

  it("refuses the note after any change of any byte, and every truncation", () => {
    const bytes = Buffer.from(NOTE);
    const accepted: number[] = [];
    bytes.forEach((byte, i) => {
      for (const change of [1, 0x20, 0x80]) {
        if (
          kindOf(
            Buffer.from(bytes)
              .fill(byte ^ change, i, i + 1)
              .toString(),
          ) === "ok"
        )
          accepted.push(i);
      }
      if (kindOf(bytes.subarray(0, i).toString()) === "ok") accepted.push(i);
    });
    expect(accepted).toEqual([]);
  });
});
