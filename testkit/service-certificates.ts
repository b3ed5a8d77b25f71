import { createPublicKey } from "node:crypto";
import { mkdir, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { type Authority, chainOf, createAuthority, issueCertificate } from "../lib/identity/authority.ts";
import { generateTlsKey, tlsKeyToPem } from "../lib/identity/request.ts";
import type { TlsMaterial } from "../lib/identity/tls-source.ts";

const DAY_MS = 24 * 3_600_000;

/** Where one service's certificate is. */
export interface CertificateFiles {
  certFile: string;
  keyFile: string;
  caFile: string;
}

/** An authority for the services of one test. */
export interface ServiceAuthority {
  /** Its certificate, PEM, and where it is. */
  certificate: string;
  caFile: string;
  /** A certificate for a service of this name on 127.0.0.1, good for a day. */
  issue(name: string): Promise<CertificateFiles>;
  /** A device's certificate that was good until an hour ago. */
  expiredDevice(): Promise<TlsMaterial>;
}

/** Makes one, with its files in a folder. */
export async function makeServiceAuthority(folder: string): Promise<ServiceAuthority> {
  const authority: Authority = await createAuthority({ commonName: "services", ttlMs: DAY_MS, now: Date.now() });
  await mkdir(folder, { recursive: true });
  const caFile = join(folder, "ca.crt");
  await writeFile(caFile, authority.certificate);
  return {
    certificate: authority.certificate,
    caFile,
    async issue(name) {
      const own = join(folder, name);
      await mkdir(own, { recursive: true });
      const key = generateTlsKey();
      const leaf = await issueCertificate(authority, createPublicKey(key), {
        identity: { kind: "service", name, trustDomain: "reeve" },
        dns: ["localhost"],
        ips: ["127.0.0.1"],
        ttlMs: DAY_MS,
        now: Date.now(),
      });
      const [certFile, keyFile] = [join(own, "tls.crt"), join(own, "tls.key")];
      await writeFile(certFile, chainOf(leaf, authority));
      await writeFile(keyFile, tlsKeyToPem(key), { mode: 0o600 });
      return { certFile, keyFile, caFile };
    },
    async expiredDevice() {
      const key = generateTlsKey();
      const leaf = await issueCertificate(authority, createPublicKey(key), {
        identity: { kind: "device", id: "dev-0123456789abcdef", trustDomain: "reeve" },
        ttlMs: DAY_MS / 24,
        now: Date.now() - DAY_MS / 12,
      });
      return { cert: chainOf(leaf, authority), key: tlsKeyToPem(key), ca: authority.certificate };
    },
  };
}

/** The environment in which a service finds where its certificate is. */
export function tlsEnv({ certFile, keyFile, caFile }: CertificateFiles): Record<string, string> {
  return { REEVE_TLS_CERT_FILE: certFile, REEVE_TLS_KEY_FILE: keyFile, REEVE_TLS_CA_FILE: caFile };
}
