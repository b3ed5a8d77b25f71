import type { X509Certificate } from "node:crypto";
import { certificatesOf } from "../../lib/identity/chain.ts";
import { fingerprintOf } from "../../lib/identity/fingerprint.ts";
import { formatIdentity, identityOf } from "../../lib/identity/spiffe.ts";

/** What a certificate says. */
export interface CertificateText {
  /** Whom it names, as a SPIFFE id; empty for an authority. */
  identity: string;
  isAuthority: boolean;
  subject: string;
  issuer: string;
  /** The other names, such as "DNS:registry". */
  names: string[];
  validFrom: string;
  validTo: string;
  serial: string;
  /** Of its public key. */
  fingerprint: string;
}

/** Every certificate in a PEM text, in its order. Throws what node throws for any other text. */
export function describeCertificates(pem: string): CertificateText[] {
  return certificatesOf(pem).map(describe);
}

function describe(certificate: X509Certificate): CertificateText {
  const identity = identityOf(certificate);
  const names = certificate.subjectAltName?.split(", ") ?? [];
  return {
    identity: identity === undefined ? "" : formatIdentity(identity),
    isAuthority: certificate.ca,
    subject: certificate.subject.replaceAll("\n", ", "),
    issuer: certificate.issuer.replaceAll("\n", ", "),
    names: names.filter((name) => !name.startsWith("URI:spiffe://")),
    validFrom: new Date(certificate.validFrom).toISOString(),
    validTo: new Date(certificate.validTo).toISOString(),
    serial: certificate.serialNumber.toLowerCase(),
    fingerprint: fingerprintOf(certificate.publicKey),
  };
}

/** The same for people. */
export function certificateLines(certificate: CertificateText, now: number): string {
  const { identity, isAuthority, subject, issuer, names, validFrom, validTo, serial, fingerprint } = certificate;
  const late = Date.parse(validTo) <= now ? " (expired)" : "";
  const lines = [
    ["identity", isAuthority ? "an authority" : identity || "none of Reeve's"],
    ["subject", subject],
    ["issuer", issuer],
    ["names", names.join(", ")],
    ["valid", `${validFrom} to ${validTo}${late}`],
    ["serial", serial],
    ["key", fingerprint],
  ];
  return lines.flatMap(([name = "", text]) => (text ? [`${name.padEnd(9)} ${text}\n`] : [])).join("");
}
