import { HASH_BYTES, isHash } from "../merkle/hash.ts";
import { isTreeSize } from "../merkle/plan.ts";
import { refused, type VerifyFailure } from "./dsse.ts";
import type { SigningKey } from "./keys.ts";
import { isNoteName, type NoteKey, signNote, verifyNote } from "./note.ts";
import { fromBase64, fromDecimal, toBase64 } from "./strict-text.ts";

/** The head of a log: what its signature stands for (https://c2sp.org/tlog-checkpoint). */
export interface Checkpoint {
  /** The log's name, by custom a URL without its scheme. Not empty, without white space or "+". */
  origin: string;
  /** How many records the log holds, from 0 to 2^53 - 1. */
  size: number;
  /** The Merkle root over these records (RFC 6962), 32 bytes. */
  root: Uint8Array;
}

/** What verifying a checkpoint gives: the head only where it is trusted. */
export type CheckpointResult = { ok: true; checkpoint: Checkpoint } | VerifyFailure;

/** The text that is signed: origin, size and base64 root, a line each. Throws TypeError for what no log can have. */
export function formatCheckpoint({ origin, size, root }: Checkpoint): string {
  if (!isNoteName(origin) || !isTreeSize(size) || !isHash(root)) throw new TypeError("not the head of a log");
  return `${origin}\n${size}\n${toBase64(root)}\n`;
}

/**
 * Reads the text of a checkpoint, without its signatures. undefined for anything that formatCheckpoint does not write;
 * so also for extension lines, which the specification allows and advises against.
 */
export function parseCheckpoint(text: string): Checkpoint | undefined {
  const [origin = "", sizeText = "", rootText = "", end, ...more] = text.split("\n");
  const size = fromDecimal(sizeText);
  const root = fromBase64(rootText);
  if (!isNoteName(origin) || size === undefined || root?.length !== HASH_BYTES) return undefined;
  return end === "" && more.length === 0 ? { origin, size, root } : undefined;
}

/**
 * Signs the head of a log as a note, under the log's origin: with several keys while they are being changed. Throws
 * TypeError for what no log can have.
 */
export function signCheckpoint(checkpoint: Checkpoint, ...keys: readonly [SigningKey, ...SigningKey[]]): string {
  return signNote(formatCheckpoint(checkpoint), checkpoint.origin, ...keys);
}

/**
 * Verifies a signed checkpoint with the key of the log. wrong_type: the key signed a checkpoint of another log, or
 * another kind of note. Signatures by other keys, such as a witness's, are ignored. Never throws.
 */
export function verifyCheckpoint(note: string, key: NoteKey): CheckpointResult {
  const opened = verifyNote(note, key);
  if (!opened.ok) return opened;
  const checkpoint = parseCheckpoint(opened.text);
  return checkpoint?.origin === key.name ? { ok: true, checkpoint } : refused("wrong_type");
}

/** What verifying a checkpoint with the keys of a log gives: the head only where one of them signed it. */
export type SignedHeadResult = { ok: true; checkpoint: Checkpoint; signers: readonly NoteKey[] } | VerifyFailure;

/**
 * Verifies a signed checkpoint with the keys that a log has had, of which one or more must have signed it; `signers` are
 * those that did. Where none did, says how the key came closest. Never throws.
 */
export function verifyCheckpointByAny(note: string, keys: readonly NoteKey[]): SignedHeadResult {
  const results = keys.map((key) => ({ key, result: verifyCheckpoint(note, key) }));
  const signers = results.filter(({ result }) => result.ok).map(({ key }) => key);
  const found = results.find(({ result }) => result.ok)?.result;
  if (found?.ok) return { ok: true, checkpoint: found.checkpoint, signers };
  const failures = results.flatMap(({ result }) => (result.ok ? [] : [result]));
  return failures.find(({ kind }) => kind !== "unknown_key") ?? failures[0] ?? refused("unknown_key");
}
