import { isHash } from "../merkle/hash.ts";
import { isTreeSize } from "../merkle/plan.ts";
import { verifyInclusion } from "../merkle/verify.ts";
import { type Checkpoint, verifyCheckpointByAny } from "./checkpoint.ts";
import { refused, type VerifyFailure } from "./dsse.ts";
import { MAX_NOTE_LENGTH, type NoteKey } from "./note.ts";
import { fromBase64, fromDecimal, toBase64 } from "./strict-text.ts";

/** Proof that a record is in a log, whole and for offline use: a receipt (https://c2sp.org/tlog-proof). */
export interface TlogProof {
  /** The record's place in the log, from 0. */
  index: number;
  /** The inclusion proof, from the leaf's sibling up (RFC 6962 §2.1.1). */
  path: readonly Uint8Array[];
  /** The log's signed checkpoint, with whatever cosignatures it carries. */
  checkpoint: string;
  /** Opaque, and not signed by anyone: never trusted. */
  extra?: Uint8Array;
}

/** What verifying a receipt gives. bad_signature also where the path does not lead to the checkpoint's root. */
export type TlogProofResult = { ok: true; index: number; checkpoint: Checkpoint } | VerifyFailure;

const HEADER = "c2sp.org/tlog-proof@v1";
const HEAD = /^c2sp\.org\/tlog-proof@v1\n(?:extra (\S+)\n)?index (\S+)((?:\n\S{44})*)$/;
const MAX_LENGTH = 2 * MAX_NOTE_LENGTH;

/** The text of a receipt. Throws TypeError for an index or a path that no proof has. */
export function formatTlogProof({ index, path, checkpoint, extra }: TlogProof): string {
  if (!isTreeSize(index) || !path.every(isHash)) throw new TypeError("not a proof of a log");
  const extraLines = extra && extra.length > 0 ? [`extra ${toBase64(extra)}`] : [];
  const lines = [HEADER, ...extraLines, `index ${index}`, ...path.map(toBase64)];
  return `${lines.join("\n")}\n\n${checkpoint}`;
}

/** Reads the text of a receipt and verifies nothing; undefined for anything that formatTlogProof does not write. */
export function parseTlogProof(text: string): TlogProof | undefined {
  const blank = text.length <= MAX_LENGTH ? text.indexOf("\n\n") : -1;
  const [, extraText, indexText = "", pathText = ""] = HEAD.exec(text.slice(0, Math.max(blank, 0))) ?? [];
  const index = fromDecimal(indexText);
  const extra = extraText === undefined ? undefined : fromBase64(extraText);
  const path = pathText.split("\n").slice(1).map(fromBase64);
  if (index === undefined || !path.every(isHash) || (extraText !== undefined && !extra)) return undefined;
  return { index, path, checkpoint: text.slice(blank + 2), ...(extra && { extra }) };
}

/**
 * Verifies a receipt offline: the signature on the checkpoint, by one of the keys that the log has had, and the path from the record's leaf hash to the
 * checkpoint's root. Any change to the record, the index, the path or the checkpoint is refused. Never throws.
 */
export function verifyTlogProof(
  text: string,
  leafHash: Uint8Array,
  ...keys: readonly [NoteKey, ...NoteKey[]]
): TlogProofResult {
  const proof = parseTlogProof(text);
  if (!proof) return refused("malformed");
  const opened = verifyCheckpointByAny(proof.checkpoint, keys);
  if (!opened.ok) return opened;
  const { checkpoint } = opened;
  const isInLog = verifyInclusion(leafHash, proof.index, checkpoint.size, proof.path, checkpoint.root);
  return isInLog ? { ok: true, index: proof.index, checkpoint } : refused("bad_signature");
}
