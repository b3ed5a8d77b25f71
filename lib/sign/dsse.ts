import { create } from "@bufbuild/protobuf";
import { type Signature, type SignedEnvelope, SignedEnvelopeSchema } from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import { type Keyring, SIGNATURE_BYTES, type SigningKey, signBytes, verifyBytes } from "./keys.ts";

/**
 * Why signed bytes were refused:
 * unknown_key: no signature names a trusted key. bad_signature: a trusted key is named and did not sign these bytes.
 * wrong_type: they are something other than what was asked for. malformed: they have not the form of a signed thing.
 */
export type VerifyFailureKind = "unknown_key" | "bad_signature" | "wrong_type" | "malformed";

/** Signed bytes that were refused. */
export interface VerifyFailure {
  ok: false;
  kind: VerifyFailureKind;
}

/** What verifying an envelope gives: the payload only where it is trusted, with the id of the key that signed it. */
export type EnvelopeResult = { ok: true; payload: Uint8Array; keyId: string } | VerifyFailure;

// One is usual; the limit bounds what a hostile envelope costs to verify.
const MAX_SIGNATURES = 8;

/**
 * The bytes that a DSSE signature covers: type and payload with their lengths, so that neither can pass for the other
 * (https://github.com/secure-systems-lab/dsse/blob/master/protocol.md, PAE).
 */
export function pae(payloadType: string, payload: Uint8Array): Uint8Array {
  const head = `DSSEv1 ${Buffer.byteLength(payloadType)} ${payloadType} ${payload.length} `;
  return Buffer.concat([Buffer.from(head), payload]);
}

/** Signs a payload of that type with one key. The payload is carried as it is, not copied. */
export function signEnvelope(key: SigningKey, payloadType: string, payload: Uint8Array): SignedEnvelope {
  const signature = signBytes(key, pae(payloadType, payload));
  return create(SignedEnvelopeSchema, { payload, payloadType, signatures: [{ keyId: key.keyId, signature }] });
}

/**
 * Verifies that a trusted key signed this payload as that type, and only then gives the payload out. One good
 * signature is enough. At most 8 signatures. Never throws, whatever the envelope holds.
 */
export function verifyEnvelope(
  envelope: SignedEnvelope | undefined,
  keyring: Keyring,
  payloadType: string,
): EnvelopeResult {
  if (!envelope || !hasForm(envelope)) return refused("malformed");
  if (envelope.payloadType !== payloadType) return refused("wrong_type");
  const signedBytes = pae(payloadType, envelope.payload);
  let kind: VerifyFailureKind = "unknown_key";
  for (const { keyId, signature } of envelope.signatures) {
    const key = keyring.find(keyId);
    if (!key) continue;
    if (verifyBytes(key, signedBytes, signature)) return { ok: true, payload: envelope.payload, keyId: key.keyId };
    kind = "bad_signature";
  }
  return refused(kind);
}

/** A refusal of that kind. */
export function refused<Kind extends VerifyFailureKind>(kind: Kind): { ok: false; kind: Kind } {
  return { ok: false, kind };
}

function hasForm(envelope: SignedEnvelope): boolean {
  const count = envelope.signatures.length;
  return count > 0 && count <= MAX_SIGNATURES && envelope.signatures.every(isSignature);
}

function isSignature(signature: Signature): boolean {
  return signature.signature.length === SIGNATURE_BYTES;
}
