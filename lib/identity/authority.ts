import { createPublicKey, type KeyObject, randomBytes, X509Certificate } from "node:crypto";
import type { Extension, JsonGeneralName } from "@peculiar/x509";
import { spkiDigest, spkiOf } from "./fingerprint.ts";
import { cryptoKeysOf, generateTlsKey, isP256, TLS_KEY_ALGORITHM, tlsKeyFromPem } from "./request.ts";
import { DEFAULT_TRUST_DOMAIN, formatIdentity, type Identity } from "./spiffe.ts";
import { x509 } from "./x509.ts";

/** What signs certificates. */
export interface Authority {
  /** Its own certificate, PEM, signed by itself. */
  certificate: string;
  /** Its private key, EC P-256. */
  key: KeyObject;
}

export interface AuthorityOptions {
  /** For people, such as "reeve devices". */
  commonName: string;
  /** Whose certificates it signs. Default "reeve". */
  trustDomain?: string;
  /** How long it is good for, in milliseconds. */
  ttlMs: number;
  /** Milliseconds since 1970. */
  now: number;
}

export interface CertificateOptions {
  /** Who holds the key: the certificate's URI name, in SPIFFE's form. */
  identity: Identity;
  /** DNS names under which a server is reached. Default none. */
  dns?: readonly string[];
  /** IP addresses under which a server is reached. Default none. */
  ips?: readonly string[];
  /** How long it is good for, in milliseconds; cut where the authority ends before. */
  ttlMs: number;
  /** Milliseconds since 1970. */
  now: number;
}

/** Certificates begin this long before they are made, for clocks that are behind. Milliseconds. */
export const BACKDATE_MS = 60_000;

/** Makes a new authority with a key of its own. It can sign certificates, but no further authorities. */
export async function createAuthority(options: AuthorityOptions): Promise<Authority> {
  const { BasicConstraintsExtension, KeyUsageFlags, KeyUsagesExtension, SubjectKeyIdentifierExtension, ...lib } =
    await x509();
  const key = generateTlsKey();
  const certificate = await lib.X509CertificateGenerator.createSelfSigned({
    serialNumber: serialNumber(),
    name: [{ O: [options.trustDomain ?? DEFAULT_TRUST_DOMAIN] }, { CN: [options.commonName] }],
    keys: cryptoKeysOf(key),
    signingAlgorithm: TLS_KEY_ALGORITHM,
    notBefore: new Date(options.now - BACKDATE_MS),
    notAfter: new Date(options.now + options.ttlMs),
    extensions: [
      new BasicConstraintsExtension(true, 0, true),
      new KeyUsagesExtension(KeyUsageFlags.keyCertSign | KeyUsageFlags.cRLSign, true),
      await SubjectKeyIdentifierExtension.create(spkiOf(createPublicKey(key))),
    ],
  });
  return { certificate: withNewline(certificate.toString("pem")), key };
}

/** An authority from its certificate and its key, both PEM. Throws where one cannot be read or they do not match. */
export function authorityFromPem(certificate: string, keyPem: string): Authority {
  const parsed = new X509Certificate(certificate);
  const key = tlsKeyFromPem(keyPem);
  if (!parsed.ca) throw new Error("the certificate is not that of an authority");
  if (!parsed.checkPrivateKey(key)) throw new Error("the authority's certificate and its key do not belong together");
  return { certificate, key };
}

/**
 * Signs a certificate for a public key, PEM, for both ends of TLS. Whether the asker holds the private key is for the
 * caller to have checked. Throws where the key is not EC P-256, or where the authority has expired.
 */
export async function issueCertificate(
  authority: Authority,
  publicKey: KeyObject,
  options: CertificateOptions,
): Promise<string> {
  if (!isP256(publicKey)) throw new TypeError("certificates are given to EC P-256 keys only");
  const lib = await x509();
  const parent = new lib.X509Certificate(authority.certificate);
  const notAfter = Math.min(options.now + options.ttlMs, parent.notAfter.getTime());
  if (notAfter <= options.now) throw new Error("the authority has expired; rotate it");
  const certificate = await lib.X509CertificateGenerator.create({
    serialNumber: serialNumber(),
    subject: [{ CN: [commonName(options.identity)] }],
    issuer: parent.subjectName,
    publicKey: spkiOf(publicKey),
    signingKey: cryptoKeysOf(authority.key).privateKey,
    signingAlgorithm: TLS_KEY_ALGORITHM,
    notBefore: new Date(options.now - BACKDATE_MS),
    notAfter: new Date(notAfter),
    extensions: await leafExtensions(authority, publicKey, options),
  });
  return withNewline(certificate.toString("pem"));
}

/** A certificate and the one above it, PEM, as a server or a device shows them. */
export function chainOf(certificate: string, authority: Pick<Authority, "certificate">): string {
  return withNewline(certificate) + withNewline(authority.certificate);
}

/** The id of an authority: SHA-256 of the public key in its certificate, in hex. */
export function authorityId(certificate: string): string {
  return spkiDigest(new X509Certificate(certificate).publicKey);
}

async function leafExtensions(
  authority: Authority,
  publicKey: KeyObject,
  { identity, dns = [], ips = [] }: CertificateOptions,
): Promise<Extension[]> {
  const lib = await x509();
  const names: JsonGeneralName[] = [
    { type: "url", value: formatIdentity(identity) },
    ...dns.map((value) => ({ type: "dns" as const, value })),
    ...ips.map((value) => ({ type: "ip" as const, value })),
  ];
  const { clientAuth, serverAuth } = lib.ExtendedKeyUsage;
  return [
    new lib.BasicConstraintsExtension(false, undefined, true),
    new lib.KeyUsagesExtension(lib.KeyUsageFlags.digitalSignature, true),
    new lib.ExtendedKeyUsageExtension([serverAuth, clientAuth]),
    new lib.SubjectAlternativeNameExtension(names),
    await lib.SubjectKeyIdentifierExtension.create(spkiOf(publicKey)),
    await lib.AuthorityKeyIdentifierExtension.create(spkiOf(createPublicKey(authority.key))),
  ];
}

/** 128 random bits. A leading byte keeps the number positive and of one length. */
function serialNumber(): string {
  return `01${randomBytes(16).toString("hex")}`;
}

function commonName(identity: Identity): string {
  return identity.kind === "service" ? `reeve ${identity.name}` : identity.id;
}

function withNewline(pem: string): string {
  return pem.endsWith("\n") ? pem : `${pem}\n`;
}
