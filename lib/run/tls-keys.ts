import type { ConfigOf, ConfigSpec } from "../config/config.ts";
import { DEFAULT_TRUST_DOMAIN } from "../identity/spiffe.ts";
import { type TlsFiles, type TlsLogger, tlsFromFiles } from "../identity/tls-source.ts";

/** The settings of a service's process that say as whom it listens and calls, and whom it trusts. */
export const tlsKeys = {
  tlsCertFile: {
    name: "REEVE_TLS_CERT_FILE",
    type: "path",
    optional: true,
    doc: "File with the service's certificate, PEM, read again when it changes. Unset: cleartext, on loopback only.",
  },
  tlsKeyFile: {
    name: "REEVE_TLS_KEY_FILE",
    type: "path",
    optional: true,
    doc: "File with the certificate's private key, PEM, not readable by others.",
  },
  tlsCaFile: {
    name: "REEVE_TLS_CA_FILE",
    type: "path",
    optional: true,
    doc: "File with the authorities that callers' and servers' certificates may come from, PEM.",
  },
  allowPlaintext: {
    name: "REEVE_ALLOW_PLAINTEXT",
    type: "bool",
    default: false,
    doc: "Listen and call beyond loopback without TLS: only where something else encrypts the way, such as a mesh.",
  },
  trustDomain: {
    name: "REEVE_TRUST_DOMAIN",
    type: "string",
    default: DEFAULT_TRUST_DOMAIN,
    doc: "The trust domain of SPIFFE ids; certificates of another one are refused.",
  },
} as const satisfies ConfigSpec;

export type TlsSettings = Partial<ConfigOf<typeof tlsKeys>>;

/** The TLS material that the settings name; undefined where they name none. Throws where they name only a part. */
export function openTls(settings: TlsSettings, logger: TlsLogger): TlsFiles | undefined {
  const { tlsCertFile: certFile, tlsKeyFile: keyFile, tlsCaFile: caFile } = settings;
  if (certFile !== undefined && keyFile !== undefined && caFile !== undefined)
    return tlsFromFiles({ certFile, keyFile, caFile, logger });
  const named = [certFile, keyFile, caFile].filter((file) => file !== undefined);
  if (named.length === 0) return undefined;
  const { tlsCertFile, tlsKeyFile, tlsCaFile } = tlsKeys;
  throw new Error(`TLS needs all of ${tlsCertFile.name}, ${tlsKeyFile.name} and ${tlsCaFile.name}, or none of them`);
}
