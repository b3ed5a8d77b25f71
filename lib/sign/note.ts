import { sha256 } from "../merkle/hash.ts";
import { refused, type VerifyFailureKind } from "./dsse.ts";
import { PUBLIC_KEY_BYTES, type SigningKey, signBytes, type VerifyKey, verifyBytes, verifyKeyFromRaw } from "./keys.ts";
import { fromBase64, toBase64 } from "./strict-text.ts";

/** A key under a name, as notes know it (https://c2sp.org/signed-note). */
export interface NoteKey {
  /** Not empty, without white space, control characters or "+". By custom a URL without its scheme. */
  readonly name: string;
  /** The first 4 bytes of SHA-256(name || 0x0A || 0x01 || raw public key). */
  readonly keyHash: Uint8Array;
  readonly key: VerifyKey;
}

/** What verifying a note gives: its text only where it is trusted. */
export type NoteResult = { ok: true; text: string } | { ok: false; kind: Exclude<VerifyFailureKind, "wrong_type"> };

/** The longest note that is read, in UTF-16 code units. */
export const MAX_NOTE_LENGTH = 65_536;

const ED25519 = 0x01;
const KEY_HASH_BYTES = 4;
const MAX_SIGNATURES = 64;
// U+0085 is a space for Unicode and not for \s.
const NOT_IN_NAMES = /[\s\u0085+\p{Cc}]/u;
// All control characters but the newline. The specification refuses those below U+0020; terminals obey others too.
const NOT_IN_NOTES = /[^\P{Cc}\n]/u;
const SIGNATURE_LINE = /^— (\S+) (\S+)$/u;

/** A key under a name. Throws TypeError where the name cannot stand in a note. */
export function noteKeyOf(name: string, key: VerifyKey): NoteKey {
  if (!isNoteName(name)) throw new TypeError(`${JSON.stringify(name)} cannot be the name of a key in a note`);
  const keyHash = sha256(Buffer.concat([Buffer.from(`${name}\n`), Buffer.of(ED25519), key.raw]));
  return { name, keyHash: keyHash.subarray(0, KEY_HASH_BYTES), key };
}

/** True where a key in a note may have that name. */
export function isNoteName(name: string): boolean {
  return name.length > 0 && name.isWellFormed() && !NOT_IN_NAMES.test(name);
}

/** The key as one line of text, to hand to a verifier: name "+" hash "+" base64 (https://c2sp.org/signed-note). */
export function formatVkey({ name, keyHash, key }: NoteKey): string {
  const encoded = toBase64(Buffer.concat([Buffer.of(ED25519), key.raw]));
  return `${name}+${Buffer.from(keyHash).toString("hex")}+${encoded}`;
}

/** Reads what formatVkey writes; undefined for anything else, so also for keys that are not Ed25519. */
export function parseVkey(text: string): NoteKey | undefined {
  const [name = "", , ...rest] = text.split("+");
  const encoded = fromBase64(rest.join("+"));
  if (!isNoteName(name) || encoded?.length !== 1 + PUBLIC_KEY_BYTES) return undefined;
  const parsed = noteKeyOf(name, verifyKeyFromRaw(encoded.subarray(1)));
  return formatVkey(parsed) === text ? parsed : undefined;
}

/**
 * Signs a text under a name: the text, a blank line and one signature line for each key (https://c2sp.org/signed-note,
 * Ed25519). Throws TypeError unless the text ends in a newline and holds no other control characters.
 */
export function signNote(text: string, name: string, ...keys: readonly [SigningKey, ...SigningKey[]]): string {
  if (!text.endsWith("\n") || !isNoteText(text)) throw new TypeError("a note's text is lines, each ended by a newline");
  const bytes = Buffer.from(text);
  const lines = keys.map((key) => {
    const signature = Buffer.concat([noteKeyOf(name, key).keyHash, signBytes(key, bytes)]);
    return `— ${name} ${toBase64(signature)}\n`;
  });
  return `${text}\n${lines.join("")}`;
}

/**
 * Verifies that the key signed the note, and only then gives the text out. Signatures by other keys are ignored, as
 * the specification has it; two under this key's name and hash are malformed. At most 64 signatures and 65,536 code
 * units. Never throws, whatever the note holds.
 */
export function verifyNote(note: string, key: NoteKey): NoteResult {
  const parsed = parseNote(note);
  if (!parsed) return refused("malformed");
  const [own, ...more] = parsed.signatures.filter(
    (line) => line.name === key.name && isSame(line.keyHash, key.keyHash),
  );
  if (!own) return refused("unknown_key");
  if (more.length > 0) return refused("malformed");
  if (!verifyBytes(key.key, Buffer.from(parsed.text), own.signature)) return refused("bad_signature");
  return { ok: true, text: parsed.text };
}

interface SignatureLine {
  name: string;
  keyHash: Uint8Array;
  signature: Uint8Array;
}

function parseNote(note: string): { text: string; signatures: SignatureLine[] } | undefined {
  if (note.length > MAX_NOTE_LENGTH || !isNoteText(note) || !note.endsWith("\n")) return undefined;
  // The text may have blank lines of its own: the last one ends it.
  const blank = note.lastIndexOf("\n\n");
  if (blank < 0) return undefined;
  const lines = note.slice(blank + 2, -1).split("\n");
  const signatures = lines.slice(0, MAX_SIGNATURES).flatMap((line) => parseSignatureLine(line) ?? []);
  return signatures.length === lines.length ? { text: note.slice(0, blank + 1), signatures } : undefined;
}

function parseSignatureLine(line: string): SignatureLine | undefined {
  const [, name = "", encoded = ""] = SIGNATURE_LINE.exec(line) ?? [];
  const bytes = fromBase64(encoded);
  if (!isNoteName(name) || !bytes || bytes.length <= KEY_HASH_BYTES) return undefined;
  return { name, keyHash: bytes.subarray(0, KEY_HASH_BYTES), signature: bytes.subarray(KEY_HASH_BYTES) };
}

function isNoteText(text: string): boolean {
  return text.isWellFormed() && !NOT_IN_NOTES.test(text);
}

function isSame(a: Uint8Array, b: Uint8Array): boolean {
  return Buffer.compare(a, b) === 0;
}
