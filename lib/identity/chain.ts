import { X509Certificate } from "node:crypto";

/** Certificates above another one that are looked at, at most: the peer chooses how many it shows. */
const MAX_CHAIN = 8;

/** The certificates in a PEM text, in its order. Throws for one that does not parse. */
export function certificatesOf(pem: string): X509Certificate[] {
  const found = pem.match(/-----BEGIN CERTIFICATE-----[^-]+-----END CERTIFICATE-----/g) ?? [];
  return found.map((one) => new X509Certificate(one));
}

/**
 * True where one of the authorities signed the certificate, or the last of those that its holder showed above it. Says
 * nothing of times and purposes.
 */
export function isFromAuthority(certificate: X509Certificate, authorities: readonly X509Certificate[]): boolean {
  let lowest = certificate;
  for (let depth = 0; depth < MAX_CHAIN; depth++) {
    if (authorities.some((authority) => isSignedBy(lowest, authority))) return true;
    const above = lowest.issuerCertificate;
    if (above === undefined || !isSignedBy(lowest, above)) return false;
    lowest = above;
  }
  return false;
}

function isSignedBy(certificate: X509Certificate, authority: X509Certificate): boolean {
  return authority.ca && certificate.checkIssued(authority) && certificate.verify(authority.publicKey);
}
