import { createPublicKey, X509Certificate } from "node:crypto";
import { expect, test } from "vitest";
import { authorityFromPem, authorityId, chainOf, createAuthority, issueCertificate } from "./authority.ts";
import { fingerprintOf, spkiDigest } from "./fingerprint.ts";
import { generateTlsKey, tlsKeyToPem } from "./request.ts";
import { type Identity, identityOf } from "./spiffe.ts";

const NOW = Date.parse("2026-11-22T10:00:00Z");
const DAY_MS = 86_400_000;
const REGISTRY: Identity = { kind: "service", name: "registry", trustDomain: "reeve" };
const authority = await createAuthority({ commonName: "test", ttlMs: 30 * DAY_MS, now: NOW });
const key = createPublicKey(generateTlsKey());

const issue = async (options: Partial<Parameters<typeof issueCertificate>[2]> = {}) =>
  new X509Certificate(
    await issueCertificate(authority, key, { identity: REGISTRY, ttlMs: DAY_MS, now: NOW, ...options }),
  );

test("a certificate names its holder, is signed by the authority, and may be shown by both ends", async () => {
  const leaf = await issue({ dns: ["registry.example"], ips: ["127.0.0.1", "::1"] });
  const parent = new X509Certificate(authority.certificate);
  expect(leaf.checkIssued(parent) && leaf.verify(parent.publicKey)).toBe(true);
  expect(identityOf(leaf)).toEqual(REGISTRY);
  expect(leaf.checkHost("registry.example")).toBe("registry.example");
  expect(leaf.checkIP("127.0.0.1")).toBe("127.0.0.1");
  expect(leaf.subjectAltName).toContain("IP Address:0:0:0:0:0:0:0:1");
  expect(leaf.keyUsage).toEqual(["1.3.6.1.5.5.7.3.1", "1.3.6.1.5.5.7.3.2"]);
  expect(leaf.ca).toBe(false);
  expect(spkiDigest(leaf.publicKey)).toBe(spkiDigest(key));
});

test("an authority signs certificates and is signed by itself", () => {
  const parent = new X509Certificate(authority.certificate);
  expect(parent.ca).toBe(true);
  expect(parent.verify(parent.publicKey)).toBe(true);
  expect(authorityId(authority.certificate)).toBe(spkiDigest(createPublicKey(authority.key)));
});

test("a certificate is valid for its time, a minute for slow clocks included, and no longer than its authority", async () => {
  const leaf = await issue();
  expect(Date.parse(leaf.validFrom)).toBe(NOW - 60_000);
  expect(Date.parse(leaf.validTo)).toBe(NOW + DAY_MS);
  expect(Date.parse((await issue({ ttlMs: 90 * DAY_MS })).validTo)).toBe(NOW + 30 * DAY_MS);
});

test("an expired authority signs nothing", async () => {
  await expect(issue({ now: NOW + 30 * DAY_MS })).rejects.toThrow("the authority has expired");
});

test("serial numbers are random and long", async () => {
  const serials = await Promise.all([issue(), issue(), issue()]);
  expect(new Set(serials.map(({ serialNumber }) => serialNumber)).size).toBe(3);
  for (const { serialNumber } of serials) expect(serialNumber).toHaveLength(34);
});

test("an authority comes back from its two texts, and not with the key of another", async () => {
  const again = authorityFromPem(authority.certificate, tlsKeyToPem(authority.key));
  expect(authorityId(again.certificate)).toBe(authorityId(authority.certificate));
  expect(() => authorityFromPem(authority.certificate, tlsKeyToPem(generateTlsKey()))).toThrow(
    "do not belong together",
  );
  const leaf = await issue();
  expect(() => authorityFromPem(leaf.toString(), tlsKeyToPem(authority.key))).toThrow("not that of an authority");
});

test("a chain is the certificate and the one above it", async () => {
  const leaf = (await issue()).toString();
  const found = chainOf(leaf, authority).match(/-----BEGIN CERTIFICATE-----/g);
  expect(found).toHaveLength(2);
  expect(new X509Certificate(chainOf(leaf, authority)).fingerprint256).toBe(new X509Certificate(leaf).fingerprint256);
});

test("a fingerprint is 32 pairs in capitals of the key's digest", () => {
  expect(fingerprintOf(key)).toMatch(/^([0-9A-F]{2}:){31}[0-9A-F]{2}$/);
  expect(fingerprintOf(key).replaceAll(":", "").toLowerCase()).toBe(spkiDigest(key));
});
