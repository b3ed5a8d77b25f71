import { createPublicKey } from "node:crypto";
import type { JsonGeneralName } from "@peculiar/x509";
import { type Authority, chainOf, createAuthority, issueCertificate } from "../authority.ts";
import { spkiOf } from "../fingerprint.ts";
import { cryptoKeysOf, generateTlsKey, TLS_KEY_ALGORITHM, tlsKeyToPem } from "../request.ts";
import { DEFAULT_TRUST_DOMAIN, type Identity } from "../spiffe.ts";
import type { TlsMaterial } from "../tls-source.ts";
import { x509 } from "../x509.ts";

const HOUR_MS = 3_600_000;
const LONG_AGO_MS = 48 * HOUR_MS;

/** A service of the trust domain that tests use. */
export function service(name: string): Identity {
  return { kind: "service", name, trustDomain: DEFAULT_TRUST_DOMAIN };
}

/** A device of that trust domain. */
export function device(id: string): Identity {
  return { kind: "device", id, trustDomain: DEFAULT_TRUST_DOMAIN };
}

/** An authority that existed yesterday already, so that it can have signed what has expired. */
export function testAuthority(): Promise<Authority> {
  return createAuthority({ commonName: "test", ttlMs: 2 * LONG_AGO_MS, now: Date.now() - LONG_AGO_MS });
}

/**
 * A certificate with its key. It is good for an hour, for 127.0.0.1 and localhost as well.
 *
 * @param trusted What its holder trusts. Default: the same authority.
 * @param now When it was made. Default: now.
 */
export async function testMaterial(
  authority: Authority,
  identity: Identity,
  options: { trusted?: Authority; now?: number; ttlMs?: number } = {},
): Promise<TlsMaterial> {
  const { trusted = authority, now = Date.now(), ttlMs = HOUR_MS } = options;
  const key = generateTlsKey();
  const names = { identity, dns: ["localhost"], ips: ["127.0.0.1"] };
  const cert = await issueCertificate(authority, createPublicKey(key), { ...names, ttlMs, now });
  return { cert: chainOf(cert, authority), key: tlsKeyToPem(key), ca: trusted.certificate };
}

/** As testMaterial, with any names and uses, also such as our own authority never signs. */
export async function oddMaterial(
  authority: Authority,
  names: JsonGeneralName[],
  uses: "both" | "server" = "both",
): Promise<TlsMaterial> {
  const lib = await x509();
  const key = generateTlsKey();
  const { serverAuth, clientAuth } = lib.ExtendedKeyUsage;
  const certificate = await lib.X509CertificateGenerator.create({
    serialNumber: "01",
    subject: [{ CN: ["odd"] }],
    issuer: new lib.X509Certificate(authority.certificate).subjectName,
    publicKey: spkiOf(createPublicKey(key)),
    signingKey: cryptoKeysOf(authority.key).privateKey,
    signingAlgorithm: TLS_KEY_ALGORITHM,
    notBefore: new Date(Date.now() - HOUR_MS),
    notAfter: new Date(Date.now() + HOUR_MS),
    extensions: [
      new lib.ExtendedKeyUsageExtension(uses === "server" ? [serverAuth] : [serverAuth, clientAuth]),
      ...(names.length === 0 ? [] : [new lib.SubjectAlternativeNameExtension(names)]),
    ],
  });
  return { cert: certificate.toString("pem"), key: tlsKeyToPem(key), ca: authority.certificate };
}
