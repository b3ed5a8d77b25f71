import { create, type JsonValue } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { type SignedEnvelope, SignedEnvelopeSchema } from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { OwnerManifest } from "../../gen/ts/reeve/device/v1/owner_manifest_pb.ts";
import { parseStrictJson } from "../json/strict-json.ts";
import { sha256Hex } from "../sign/canonical.ts";
import { signEnvelope, type VerifyFailureKind, verifyEnvelope } from "../sign/dsse.ts";
import type { Keyring, SigningKey } from "../sign/keys.ts";
import { OWNER_MANIFEST_TYPE } from "../sign/payload-types.ts";
import { readOwnerManifest } from "./document.ts";
import { ManifestError } from "./manifest-error.ts";

/** A manifest whose signature was found good. */
export interface SignedManifest {
  manifest: OwnerManifest;
  /** Exactly as it was signed. */
  text: string;
  /** SHA-256 of the text, in hex. */
  digest: string;
  /** The id of the key that signed it. */
  keyId: string;
}

/** Signs the text of a manifest: the file's text, in the JSON form of DSSE (https://github.com/secure-systems-lab/dsse/blob/master/envelope.md). */
export function signManifest(key: SigningKey, text: string): string {
  const { payload, payloadType, signatures } = signEnvelope(key, OWNER_MANIFEST_TYPE, Buffer.from(text));
  const json = {
    payload: base64(payload),
    payloadType,
    signatures: signatures.map(({ keyId, signature }) => ({ keyid: keyId, sig: base64(signature) })),
  };
  return `${JSON.stringify(json, undefined, 2)}\n`;
}

/** Reads the file's form, and trusts nothing of it. Throws ManifestError. */
export function parseEnvelope(bytes: Uint8Array): SignedEnvelope {
  try {
    const { payload, payloadType, signatures } = objectOf(parseStrictJson(bytes));
    if (!Array.isArray(signatures)) throw new Error("it has no signatures");
    return create(SignedEnvelopeSchema, {
      payload: bytesOf(payload),
      payloadType: textOf(payloadType),
      signatures: signatures.map((one) => {
        const { keyid, sig } = objectOf(one);
        return { keyId: textOf(keyid), signature: bytesOf(sig) };
      }),
    });
  } catch (cause: unknown) {
    throw new ManifestError("it is no signed manifest as `reeve manifest sign` writes it", { cause });
  }
}

/** Opens a manifest that one of these keys must have signed. Whether it has expired is for `isExpired`. Throws ManifestError. */
export function openManifest(envelope: SignedEnvelope, keyring: Keyring): SignedManifest {
  const result = verifyEnvelope(envelope, keyring, OWNER_MANIFEST_TYPE);
  if (!result.ok) throw new ManifestError(WORDS[result.kind]);
  const text = textIn(result.payload);
  const read = readOwnerManifest(text);
  if (!read.ok)
    throw new ManifestError(read.problems.map(({ line, message }) => `line ${line}: ${message}`).join("; "));
  return { manifest: read.manifest, text, digest: sha256Hex(result.payload), keyId: result.keyId };
}

/** From when on a manifest is refused, in milliseconds since 1970. */
export function expiryMs({ expireTime }: Pick<OwnerManifest, "expireTime">): number {
  return expireTime === undefined ? 0 : timestampMs(expireTime);
}

/** The text of an envelope, trusted or not. Throws ManifestError where it is no UTF-8. */
export function textIn(payload: Uint8Array): string {
  try {
    return new TextDecoder("utf-8", { fatal: true, ignoreBOM: true }).decode(payload);
  } catch (cause: unknown) {
    throw new ManifestError("its text is no UTF-8", { cause });
  }
}

const WORDS: Readonly<Record<VerifyFailureKind, string>> = {
  unknown_key: "no key that is trusted for it has signed it",
  bad_signature: "its signature does not fit: it was changed after it was signed",
  wrong_type: "what was signed is something else than an owner's manifest",
  malformed: "it has no signature of the right form",
};

function objectOf(value: JsonValue | undefined): { [key: string]: JsonValue } {
  if (typeof value === "object" && value !== null && !Array.isArray(value)) return value;
  throw new Error("no object");
}

function textOf(value: JsonValue | undefined): string {
  if (typeof value === "string") return value;
  throw new Error("no text");
}

function bytesOf(value: JsonValue | undefined): Uint8Array {
  return Buffer.from(textOf(value), "base64");
}

function base64(bytes: Uint8Array): string {
  return Buffer.from(bytes).toString("base64");
}
