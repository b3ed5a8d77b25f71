import { readFile } from "node:fs/promises";
import { fromBinary, type JsonObject, type JsonValue } from "@bufbuild/protobuf";
import type { GetInclusionProofResponse } from "../../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import { type AuditRecord, AuditRecordSchema } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import { parseStrictJson } from "../../lib/json/strict-json.ts";
import { leafHash } from "../../lib/merkle/hash.ts";
import { verifyTlogProof } from "../../lib/sign/tlog-proof.ts";
import { parseVkeys } from "../../lib/sign/vkeys.ts";
import { UsageError } from "../errors/usage-error.ts";
import { wholeJson } from "../print/json.ts";

/** A proof with the record that it is about. */
export interface ProofBundle {
  /** The proof (https://c2sp.org/tlog-proof). */
  text: string;
  /** The record's exact bytes. */
  leaf: Uint8Array;
}

/** What checking a proof gives. */
export type ProofCheck =
  | { ok: true; index: number; size: number; origin: string; record: AuditRecord | undefined }
  | { ok: false; why: string };

/** One document that holds all that checking needs but the key. */
export function bundleJson({ entry, text }: GetInclusionProofResponse): JsonObject {
  return {
    index: Number(entry?.index ?? 0n),
    record: entry?.record === undefined ? null : wholeJson(AuditRecordSchema, entry.record),
    leaf: Buffer.from(entry?.leaf ?? new Uint8Array()).toString("base64"),
    proof: text,
  };
}

/**
 * Reads a proof: a document as `bundleJson` makes it, or the proof's text with the record's bytes in a file of their
 * own. Throws a UsageError for anything else.
 */
export async function readBundle(path: string, leafPath: string | undefined): Promise<ProofBundle> {
  const bytes = await readNamed(path);
  if (bytes[0] === 0x7b) return bundleOf(parseStrictJson(bytes), path);
  if (leafPath === undefined)
    throw new UsageError(`${path} is a bare proof`, ["name the file with the record's bytes: --leaf FILE"]);
  return { text: bytes.toString("utf8"), leaf: await readNamed(leafPath) };
}

/** Checks a proof offline: the checkpoint's signature, and that its tree holds exactly this record at this index. */
export function checkProof({ text, leaf }: ProofBundle, verifierKey: string): ProofCheck {
  const keys = parseVkeys(verifierKey);
  if (keys === undefined) throw new UsageError("the verifier key cannot be read");
  const result = verifyTlogProof(text, leafHash(leaf), ...keys);
  if (!result.ok) return { ok: false, why: WHY[result.kind] };
  const { size, origin } = result.checkpoint;
  return { ok: true, index: result.index, size, origin, record: decode(leaf) };
}

const WHY = {
  unknown_key: "its checkpoint is signed by another key",
  bad_signature: "the record, its place or the checkpoint is not what was signed",
  wrong_type: "its checkpoint is of another log",
  malformed: "it has not the form of a proof",
} as const;

function bundleOf(value: JsonValue, path: string): ProofBundle {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    const { proof, leaf } = value;
    if (typeof proof === "string" && typeof leaf === "string")
      return { text: proof, leaf: Buffer.from(leaf, "base64") };
  }
  throw new UsageError(`${path} has no proof and no leaf in it`);
}

async function readNamed(path: string): Promise<Buffer> {
  try {
    return await readFile(path);
  } catch (error: unknown) {
    throw new UsageError(`${path} cannot be read`, [], { cause: error });
  }
}

function decode(leaf: Uint8Array): AuditRecord | undefined {
  try {
    return fromBinary(AuditRecordSchema, leaf);
  } catch {
    return undefined;
  }
}
