import { createPublicKey, X509Certificate } from "node:crypto";
import { mkdir, readFile } from "node:fs/promises";
import { isIP } from "node:net";
import { join } from "node:path";
import { readPrivateFile } from "../../lib/files/private-file.ts";
import {
  type Authority,
  authorityFromPem,
  chainOf,
  createAuthority,
  issueCertificate,
} from "../../lib/identity/authority.ts";
import { generateTlsKey, tlsKeyToPem } from "../../lib/identity/request.ts";
import { DEFAULT_TRUST_DOMAIN } from "../../lib/identity/spiffe.ts";
import { createTlsHolder, type TlsMaterial, type TlsSource } from "../../lib/identity/tls-source.ts";
import { writePrivateFile } from "../private-file.ts";

/** The authority of a control plane on one machine, and the certificate that its registry shows to devices. */
export interface RegistryCertificate extends TlsSource {
  /** Stops renewing. */
  close(): void;
}

const DAY_MS = 24 * 3_600_000;
const AUTHORITY_TTL_MS = 3650 * DAY_MS;
const CERTIFICATE_TTL_MS = 30 * DAY_MS;
/** How often the certificate is looked at, in milliseconds. */
const RENEW_EVERY_MS = DAY_MS / 2;

/**
 * The certificate of a registry that devices dial. The authority is made at the first start and kept in the folder, as
 * ca.crt and ca.key: devices know the control plane by it. The certificate is made anew at each start, and again at half
 * its validity.
 *
 * @param host the address that the registry listens on; it stands in the certificate beside localhost.
 */
export async function openRegistryCertificate(folder: string, host: string): Promise<RegistryCertificate> {
  await mkdir(folder, { recursive: true, mode: 0o700 });
  const authority = await openAuthority(folder);
  const holder = createTlsHolder(await issue(authority, host));
  const timer = setInterval(() => void renew(), RENEW_EVERY_MS).unref();
  const renew = async (): Promise<void> => {
    const { validToDate } = new X509Certificate(holder.current().cert);
    if (validToDate.getTime() - Date.now() < CERTIFICATE_TTL_MS / 2) holder.replace(await issue(authority, host));
  };
  return { current: holder.current, onChange: holder.onChange, close: () => clearInterval(timer) };
}

async function openAuthority(folder: string): Promise<Authority> {
  const [certificateFile, keyFile] = [join(folder, "ca.crt"), join(folder, "ca.key")];
  const certificate = await readFile(certificateFile, "utf8").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (certificate !== undefined) return authorityFromPem(certificate, readPrivateFile(keyFile));
  const authority = await createAuthority({ commonName: "reeve services", ttlMs: AUTHORITY_TTL_MS, now: Date.now() });
  // The certificate last: where it is, the key is.
  await writePrivateFile(keyFile, tlsKeyToPem(authority.key));
  await writePrivateFile(certificateFile, authority.certificate);
  return authority;
}

async function issue(authority: Authority, host: string): Promise<TlsMaterial> {
  const key = generateTlsKey();
  const isAddress = isIP(host) !== 0;
  const leaf = await issueCertificate(authority, createPublicKey(key), {
    identity: { kind: "service", name: "registry", trustDomain: DEFAULT_TRUST_DOMAIN },
    dns: isAddress ? ["localhost"] : ["localhost", host],
    ips: [...new Set(["127.0.0.1", ...(isAddress ? [host] : [])])],
    ttlMs: CERTIFICATE_TTL_MS,
    now: Date.now(),
  });
  return { cert: chainOf(leaf, authority), key: tlsKeyToPem(key), ca: authority.certificate };
}
