import { describe, expect, it } from "vitest";
import {
  createKeyring,
  generateSigningKey,
  keyIdOf,
  signBytes,
  signingKeyFromPem,
  signingKeyToPem,
  verifyBytes,
  verifyKeyFromRaw,
} from "./keys.ts";

// RFC 8032 §7.1, TEST 2.
const SEED = "4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb";
const PUBLIC = "3d4017c3e843895a92b70aa74d1b7ebc9c982ccf2ec4968cc0cd55f12af4660c";
const SIGNATURE =
  "92a009a9f0d4cab8720e820b5f642540a2b27b5416503f8fb3762223ebdb69da" +
  "085ac1e43e15996e458f3613d0f11d8c387b2eaeb4302aeeb00d291612bb0c00";
// RFC 8410 §7: the PKCS #8 form of an Ed25519 private key is this prefix and the seed.
const PKCS8_PREFIX = "302e020100300506032b657004220420";

function pemOf(der: Buffer): string {
  return `-----BEGIN PRIVATE KEY-----\n${der.toString("base64")}\n-----END PRIVATE KEY-----\n`;
}

describe("keys", () => {
  it("sign and verify as RFC 8032 does", () => {
    const key = signingKeyFromPem(pemOf(Buffer.from(PKCS8_PREFIX + SEED, "hex")));
    expect(Buffer.from(key.raw).toString("hex")).toBe(PUBLIC);
    const message = Buffer.from("72", "hex");
    expect(Buffer.from(signBytes(key, message)).toString("hex")).toBe(SIGNATURE);
    expect(verifyBytes(verifyKeyFromRaw(Buffer.from(PUBLIC, "hex")), message, Buffer.from(SIGNATURE, "hex"))).toBe(
      true,
    );
  });

  it("survive the way through PEM and through raw bytes", () => {
    const key = generateSigningKey();
    const again = signingKeyFromPem(signingKeyToPem(key));
    expect(again.keyId).toBe(key.keyId);
    expect(verifyBytes(verifyKeyFromRaw(key.raw), Buffer.from("m"), signBytes(again, Buffer.from("m")))).toBe(true);
  });

  it("are named by the first 16 hex digits of the SHA-256 of the raw key", () => {
    expect(keyIdOf(Buffer.from(PUBLIC, "hex"))).toMatch(/^[0-9a-f]{16}$/);
    expect(keyIdOf(Buffer.from("abc"))).toBe("ba7816bf8f01cfea");
  });

  it("refuse what is no Ed25519 key, without repeating it", () => {
    expect(() => verifyKeyFromRaw(new Uint8Array(31))).toThrow(TypeError);
    for (const pem of ["", "secret text", pemOf(Buffer.from("secret")), X25519_PEM]) {
      expect(() => signingKeyFromPem(pem)).toThrow(/^no Ed25519 private key/);
    }
  });
});

describe("verifyBytes", () => {
  it("refuses signatures of the wrong length, key or message", () => {
    const key = generateSigningKey();
    const signature = signBytes(key, Buffer.from("m"));
    expect(verifyBytes(key, Buffer.from("m"), signature.subarray(1))).toBe(false);
    expect(verifyBytes(key, Buffer.from("m"), new Uint8Array(0))).toBe(false);
    expect(verifyBytes(key, Buffer.from("n"), signature)).toBe(false);
    expect(verifyBytes(generateSigningKey(), Buffer.from("m"), signature)).toBe(false);
  });
});

describe("createKeyring", () => {
  it("finds its keys by id and nothing else", () => {
    const key = generateSigningKey();
    const ring = createKeyring([key, key]);
    expect(ring.find(key.keyId)).toBe(key);
    expect(ring.find("0000000000000000")).toBeUndefined();
    expect(ring.find("")).toBeUndefined();
  });

  it("refuses two keys with one id", () => {
    const key = generateSigningKey();
    const impostor = { ...generateSigningKey(), keyId: key.keyId };
    expect(() => createKeyring([key, impostor])).toThrow(TypeError);
  });
});

const X25519_PEM = pemOf(Buffer.from(`302e020100300506032b656e04220420${SEED}`, "hex"));
