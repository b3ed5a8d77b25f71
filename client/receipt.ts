import { fromBinary } from "@bufbuild/protobuf";
import {
  type BatchHead,
  BatchHeadSchema,
  type Signed,
  type SignedEnvelope,
} from "../gen/ts/reeve/common/v1/signed_pb.ts";
import { type Receipt, ReceiptSchema } from "../gen/ts/reeve/device/v1/receipt_pb.ts";
import type { CompleteCall } from "./complete-call.ts";

/** A receipt that the device signed for this very call, or why it is not one. */
export type ReceiptResult = { ok: true; receipt: Receipt } | { ok: false; problem: string };

const HEAD_TYPE = "application/vnd.reeve.batch-head.v1";
const RECEIPT_TYPE = "application/vnd.reeve.receipt.v1";
const HASH_BYTES = 32;
/** A batch has at most 1024 statements, and an envelope at most 8 signatures. */
const LIMITS = { batch: 1024, path: 10, signatures: 8 };

/**
 * Verifies a call's receipt with the device's public key alone: the signature (DSSE, Ed25519), the path to the signed batch
 * (RFC 6962), and that it is about this call, device and tool. The key is bound to the device: its digest is the device's
 * id. Never rejects for what the call holds.
 *
 * @param publicKey the device's, 32 bytes.
 */
export async function verifyReceipt(call: CompleteCall, publicKey: Uint8Array): Promise<ReceiptResult> {
  const signed = call.status.receipt;
  if (signed?.head === undefined) return problem("there is no receipt");
  const keyId = hex(await sha256(publicKey)).slice(0, 16);
  if (call.spec.deviceId !== `dev-${keyId}`) return problem("the key is not this device's");
  const head = await verifyHead(signed.head, publicKey, keyId);
  if (head === undefined) return problem("the device did not sign it");
  if (head.statementType !== RECEIPT_TYPE) return problem("the statement is not a receipt");
  if (!(await isInBatch(signed, head))) return problem("the receipt is not in the batch that was signed");
  const receipt = decode(ReceiptSchema, signed.statement);
  if (receipt === undefined) return problem("the statement is not a receipt");
  const isAboutIt =
    receipt.callId === call.id && receipt.deviceId === call.spec.deviceId && receipt.tool === call.spec.tool;
  return isAboutIt ? { ok: true, receipt } : problem("the receipt is about another call");
}

async function verifyHead(
  envelope: SignedEnvelope,
  publicKey: Uint8Array,
  keyId: string,
): Promise<BatchHead | undefined> {
  const { payload, payloadType, signatures } = envelope;
  if (payloadType !== HEAD_TYPE || signatures.length > LIMITS.signatures || publicKey.length !== 32) return undefined;
  const key = await crypto.subtle.importKey("raw", bytesOf(publicKey), "Ed25519", false, ["verify"]);
  // What a DSSE signature covers: type and payload with their lengths.
  const prefix = new TextEncoder().encode(`DSSEv1 ${payloadType.length} ${payloadType} ${payload.length} `);
  const covered = concat(prefix, payload);
  for (const { keyId: named, signature } of signatures) {
    if (named !== keyId || signature.length !== 64) continue;
    if (await crypto.subtle.verify("Ed25519", key, bytesOf(signature), covered)) {
      return decode(BatchHeadSchema, payload);
    }
  }
  return undefined;
}

/** RFC 9162 §2.1.3.2: whether the path leads from the statement to the head's root. */
async function isInBatch({ statement, index, path }: Signed, { size, root }: BatchHead): Promise<boolean> {
  if (index >= size || size > LIMITS.batch || path.length > LIMITS.path) return false;
  if (root.length !== HASH_BYTES || path.some((hash) => hash.length !== HASH_BYTES)) return false;
  let hash = await sha256(concat(Uint8Array.of(0), statement));
  let at = index;
  let last = size - 1;
  for (const sibling of path) {
    if (last === 0) return false;
    const isRight = at % 2 === 1 || at === last;
    hash = await sha256(concat(Uint8Array.of(1), isRight ? sibling : hash, isRight ? hash : sibling));
    while (isRight && at % 2 === 0 && at !== 0) [at, last] = [at >> 1, last >> 1];
    [at, last] = [at >> 1, last >> 1];
  }
  return last === 0 && hex(hash) === hex(root);
}

function decode<S extends typeof ReceiptSchema | typeof BatchHeadSchema>(schema: S, bytes: Uint8Array) {
  try {
    return fromBinary(schema, bytes);
  } catch {
    return undefined;
  }
}

async function sha256(bytes: Uint8Array): Promise<Uint8Array<ArrayBuffer>> {
  return new Uint8Array(await crypto.subtle.digest("SHA-256", bytesOf(bytes)));
}

function concat(...parts: readonly Uint8Array[]): Uint8Array<ArrayBuffer> {
  const whole = new Uint8Array(parts.reduce((length, part) => length + part.length, 0));
  let at = 0;
  for (const part of parts) {
    whole.set(part, at);
    at += part.length;
  }
  return whole;
}

/** Web Crypto takes no view on shared memory. */
function bytesOf(bytes: Uint8Array): Uint8Array<ArrayBuffer> {
  return bytes.buffer instanceof ArrayBuffer ? (bytes as Uint8Array<ArrayBuffer>) : concat(bytes);
}

function hex(bytes: Uint8Array): string {
  return Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("");
}

function problem(text: string): ReceiptResult {
  return { ok: false, problem: text };
}
