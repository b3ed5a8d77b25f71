import { createPrivateKey, createPublicKey, generateKeyPairSync, type KeyObject } from "node:crypto";
import { fingerprintOf } from "./fingerprint.ts";
import { formatIdentity, type Identity } from "./spiffe.ts";
import { x509 } from "./x509.ts";

/** A certificate request that is not accepted. The message says why, and is safe to show. */
export class CertificateRequestError extends Error {
  override name = "CertificateRequestError";
}

/** What a certificate request proves: its maker holds the private key of this public key. */
export interface CheckedRequest {
  publicKey: KeyObject;
  /** SHA-256 of the public key, as hex pairs with colons. */
  fingerprint: string;
}

/** The longest request that is read, in bytes. One for P-256 has about 260. */
const MAX_REQUEST_BYTES = 8192;

/** How keys for TLS are made and used: ECDSA with P-256. Not Ed25519, which many TLS stacks and proxies do not take. */
export const TLS_KEY_ALGORITHM = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;

/** Makes a key for TLS: EC P-256. */
export function generateTlsKey(): KeyObject {
  return generateKeyPairSync("ec", { namedCurve: "prime256v1" }).privateKey;
}

/** The key as an unencrypted PKCS #8 PEM text. A secret. */
export function tlsKeyToPem(key: KeyObject): string {
  return key.export({ type: "pkcs8", format: "pem" }).toString();
}

/** Reads what tlsKeyToPem wrote. Throws TypeError where the text holds no EC P-256 private key. */
export function tlsKeyFromPem(pem: string): KeyObject {
  // The cause is dropped on purpose: nothing that was derived from a secret's text may reach a log.
  const key = parsePem(pem);
  if (key === undefined || !isP256(key)) throw new TypeError("no EC P-256 private key in PKCS #8 PEM form");
  return key;
}

/** True for a key, public or private, on the curve P-256. */
export function isP256(key: KeyObject): boolean {
  return key.asymmetricKeyType === "ec" && key.asymmetricKeyDetails?.namedCurve === "prime256v1";
}

/** The key pair for webcrypto, which x509 signs with. */
export function cryptoKeysOf(key: KeyObject): CryptoKeyPair {
  const toCryptoKey = (one: KeyObject, usage: "sign" | "verify") =>
    // The same class under two declarations: Node's and the browser's.
    one.toCryptoKey(TLS_KEY_ALGORITHM, usage === "verify", [usage]) as CryptoKey;
  return { privateKey: toCryptoKey(key, "sign"), publicKey: toCryptoKey(createPublicKey(key), "verify") };
}

/**
 * A PKCS #10 certificate request (RFC 2986), DER, signed by the key. The identity in it is what the asker requests;
 * who signs certificates decides by itself what goes in.
 */
export async function createRequest(key: KeyObject, identity: Identity): Promise<Uint8Array> {
  const { Pkcs10CertificateRequestGenerator, SubjectAlternativeNameExtension } = await x509();
  const request = await Pkcs10CertificateRequestGenerator.create({
    keys: cryptoKeysOf(key),
    signingAlgorithm: TLS_KEY_ALGORITHM,
    extensions: [new SubjectAlternativeNameExtension([{ type: "url", value: formatIdentity(identity) }])],
  });
  return new Uint8Array(request.rawData);
}

/**
 * Checks a certificate request of an unknown origin: at most 8 KiB, an EC P-256 key, and its own signature by that key.
 * Names and extensions in it are not looked at. Throws CertificateRequestError.
 */
export async function checkRequest(der: Uint8Array): Promise<CheckedRequest> {
  if (der.length > MAX_REQUEST_BYTES) {
    throw new CertificateRequestError(`the certificate request is larger than ${MAX_REQUEST_BYTES} bytes`);
  }
  const { Pkcs10CertificateRequest } = await x509();
  try {
    const request = new Pkcs10CertificateRequest(new Uint8Array(der));
    const publicKey = createPublicKey({ key: Buffer.from(request.publicKey.rawData), format: "der", type: "spki" });
    if (!isP256(publicKey)) throw new CertificateRequestError("the certificate request's key is no EC P-256 key");
    if (!(await request.verify()))
      throw new CertificateRequestError("the certificate request is not signed by its key");
    return { publicKey, fingerprint: fingerprintOf(publicKey) };
  } catch (cause: unknown) {
    if (cause instanceof CertificateRequestError) throw cause;
    throw new CertificateRequestError("the certificate request cannot be read", { cause });
  }
}

function parsePem(pem: string): KeyObject | undefined {
  try {
    return createPrivateKey({ key: pem, format: "pem" });
  } catch {
    return undefined;
  }
}
