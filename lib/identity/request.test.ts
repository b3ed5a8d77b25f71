import { createPublicKey, generateKeyPairSync } from "node:crypto";
import { expect, test } from "vitest";
import { fingerprintOf, spkiOf } from "./fingerprint.ts";
import {
  CertificateRequestError,
  checkRequest,
  createRequest,
  generateTlsKey,
  tlsKeyFromPem,
  tlsKeyToPem,
} from "./request.ts";
import type { Identity } from "./spiffe.ts";
import { x509 } from "./x509.ts";

const DEVICE: Identity = { kind: "device", id: "dev-0123456789abcdef", trustDomain: "reeve" };

test("a request proves that its maker holds the key", async () => {
  const key = generateTlsKey();
  const { publicKey, fingerprint } = await checkRequest(await createRequest(key, DEVICE));
  expect(fingerprint).toBe(fingerprintOf(createPublicKey(key)));
  expect(fingerprintOf(publicKey)).toBe(fingerprint);
});

test("a request with another's key in it is refused", async () => {
  const der = Buffer.from(await createRequest(generateTlsKey(), DEVICE));
  const mine = Buffer.from(spkiOf((await checkRequest(der)).publicKey));
  const theirs = Buffer.from(spkiOf(createPublicKey(generateTlsKey())));
  theirs.copy(der, der.indexOf(mine));
  await expect(checkRequest(der)).rejects.toThrow("not signed by its key");
});

test("a request with a changed signature is refused", async () => {
  const der = Buffer.from(await createRequest(generateTlsKey(), DEVICE));
  der[der.length - 1] = (der.at(-1) ?? 0) ^ 1;
  await expect(checkRequest(der)).rejects.toThrow(CertificateRequestError);
});

test.each([
  ["nothing", new Uint8Array()],
  ["text", Buffer.from("-----BEGIN CERTIFICATE REQUEST-----")],
  ["an empty sequence", Buffer.from([0x30, 0])],
  ["too much", new Uint8Array(8193)],
])("%s is refused with a typed error", async (_, der) => {
  await expect(checkRequest(der)).rejects.toThrow(CertificateRequestError);
});

test.each([
  [
    "RSA",
    { name: "RSASSA-PKCS1-v1_5", hash: "SHA-256", modulusLength: 2048, publicExponent: new Uint8Array([1, 0, 1]) },
  ],
  ["P-384", { name: "ECDSA", namedCurve: "P-384", hash: "SHA-384" }],
  ["Ed25519", { name: "Ed25519" }],
])("a request for a key of %s is refused", async (_, algorithm) => {
  const { Pkcs10CertificateRequestGenerator } = await x509();
  const keys = (await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"])) as CryptoKeyPair;
  const request = await Pkcs10CertificateRequestGenerator.create({ keys, signingAlgorithm: algorithm });
  await expect(checkRequest(new Uint8Array(request.rawData))).rejects.toThrow("no EC P-256 key");
});

test("a key comes back from its PEM, and nothing else does", () => {
  const key = generateTlsKey();
  expect(tlsKeyFromPem(tlsKeyToPem(key)).equals(key)).toBe(true);
  const other = generateKeyPairSync("ed25519").privateKey.export({ type: "pkcs8", format: "pem" }).toString();
  for (const pem of ["", "secret", other]) expect(() => tlsKeyFromPem(pem)).toThrow("no EC P-256 private key");
});
