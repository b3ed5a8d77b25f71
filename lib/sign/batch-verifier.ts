import { hash } from "node:crypto";
import { fromBinary } from "@bufbuild/protobuf";
import {
  type BatchHead,
  BatchHeadSchema,
  type Signed,
  type SignedEnvelope,
} from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import { isHash, leafHash } from "../merkle/hash.ts";
import { verifyInclusion } from "../merkle/verify.ts";
import { BATCH_HEAD_TYPE, MAX_BATCH } from "./batch.ts";
import { pae, refused, type VerifyFailure, verifyEnvelope } from "./dsse.ts";
import { isSameKey, type Keyring, type VerifyKey } from "./keys.ts";

/** What verifying a statement gives: its bytes only where they are trusted, with the id of the key that signed. */
export type StatementResult = { ok: true; statement: Uint8Array; keyId: string } | VerifyFailure;

/** What a batch verifier needs. */
export interface BatchVerifierOptions {
  /** Whom to trust. Asked at each statement, so a key that leaves it is refused at once. */
  keyring: Keyring;
  /** What the statements must be, such as "application/vnd.reeve.grant.v1". */
  statementType: string;
  /** How many verified heads to remember. Default 256. */
  cacheSize?: number;
}

/** Verifies statements that a batch signer signed. */
export interface BatchVerifier {
  /**
   * Verifies one statement: the head's signature and type, the size and shape, and that the path leads from the
   * statement to the head's root. A path that leads elsewhere is bad_signature. Never throws, whatever the message holds.
   */
  readonly verify: (signed: Signed | undefined) => StatementResult;
}

/** A verifier that checks the signature of each batch once and remembers the heads it found good. */
export function createBatchVerifier(options: BatchVerifierOptions): BatchVerifier {
  const { keyring, statementType, cacheSize = 256 } = options;
  const heads = createHeadCache(cacheSize);
  const trustedHead = (envelope: SignedEnvelope | undefined): TrustedHead | VerifyFailure => {
    const id = envelope && idOf(envelope);
    const cached = id === undefined ? undefined : heads.get(id, keyring);
    if (cached) return cached;
    const head = verifyHead(envelope, keyring, statementType);
    if (head.ok && id !== undefined) heads.put(id, head);
    return head;
  };
  return {
    verify(signed) {
      if (!signed || !hasForm(signed)) return refused("malformed");
      const head = trustedHead(signed.head);
      return head.ok ? verifyStatement(signed, head) : head;
    },
  };
}

// 2^10 is MAX_BATCH: a longer path cannot be one of a batch.
const MAX_PATH = Math.log2(MAX_BATCH);

interface TrustedHead {
  ok: true;
  head: BatchHead;
  key: VerifyKey;
}

function hasForm(signed: Signed): boolean {
  return signed.path.length <= MAX_PATH && signed.path.every(isHash);
}

function verifyStatement(signed: Signed, { head, key }: TrustedHead): StatementResult {
  const { statement, index, path } = signed;
  if (!(index < head.size)) return refused("malformed");
  const isInBatch = verifyInclusion(leafHash(statement), index, head.size, path, head.root);
  return isInBatch ? { ok: true, statement, keyId: key.keyId } : refused("bad_signature");
}

function verifyHead(
  envelope: SignedEnvelope | undefined,
  keyring: Keyring,
  statementType: string,
): TrustedHead | VerifyFailure {
  const opened = verifyEnvelope(envelope, keyring, BATCH_HEAD_TYPE);
  if (!opened.ok) return opened;
  const head = decodeHead(opened.payload);
  const key = keyring.find(opened.keyId);
  if (!head || !key || !isHash(head.root) || head.size < 1 || head.size > MAX_BATCH) return refused("malformed");
  if (head.statementType !== statementType) return refused("wrong_type");
  return { ok: true, head, key };
}

function decodeHead(bytes: Uint8Array): BatchHead | undefined {
  try {
    return fromBinary(BatchHeadSchema, bytes);
  } catch {
    return undefined;
  }
}

// A digest of the whole envelope, signatures included, so that a remembered head answers for itself only.
function idOf(envelope: SignedEnvelope): string {
  const parts = envelope.signatures.flatMap(({ keyId, signature }) => [
    Buffer.from(` ${Buffer.byteLength(keyId)} ${keyId} ${signature.length} `),
    signature,
  ]);
  return hash("sha256", Buffer.concat([pae(envelope.payloadType, envelope.payload), ...parts]), "hex");
}

interface HeadCache {
  get(id: string, keyring: Keyring): TrustedHead | undefined;
  put(id: string, head: TrustedHead): void;
}

// Least recently used goes first: a Map keeps the order of insertion.
function createHeadCache(capacity: number): HeadCache {
  const heads = new Map<string, TrustedHead>();
  return {
    get(id, keyring) {
      const found = heads.get(id);
      if (!found) return undefined;
      heads.delete(id);
      const trusted = keyring.find(found.key.keyId);
      if (!trusted || !isSameKey(trusted, found.key)) return undefined;
      heads.set(id, found);
      return found;
    },
    put(id, head) {
      heads.set(id, head);
      const oldest = heads.size > capacity ? heads.keys().next().value : undefined;
      if (oldest !== undefined) heads.delete(oldest);
    },
  };
}
