import { type KeyObject, X509Certificate } from "node:crypto";
import type { Transaction } from "kysely";
import { chainOf, issueCertificate } from "../../../lib/identity/authority.ts";
import type { RegistryTables } from "../tables.ts";
import type { Authorities } from "./authorities.ts";
import type { EnrollmentRow } from "./store.ts";

/** A certificate that was signed and not handed out yet. */
export interface Issued {
  /** The certificate and the one above it, PEM. */
  chain: string;
  /** SHA-256 of the certificate's DER bytes, in hex. */
  fingerprint: string;
  expireMs: number;
}

/** How certificates of devices are made. */
export interface IssueOptions {
  authorities: Authorities;
  trustDomain: string;
  /** How long they are valid, in milliseconds. */
  ttlMs: number;
  now: number;
}

/** Signs a certificate for a device's key. */
export async function signFor(deviceId: string, publicKey: KeyObject, options: IssueOptions): Promise<Issued> {
  const { authorities, trustDomain, ttlMs, now } = options;
  const authority = await authorities.signer();
  const identity = { kind: "device", id: deviceId, trustDomain } as const;
  const pem = await issueCertificate(authority, publicKey, { identity, ttlMs, now });
  const certificate = new X509Certificate(pem);
  return {
    chain: chainOf(pem, authority),
    fingerprint: certificate.fingerprint256.replaceAll(":", "").toLowerCase(),
    expireMs: Date.parse(certificate.validTo),
  };
}

/** Writes down that a certificate belongs to an enrollment, before the device gets it, and forgets those that have expired. */
export async function keepCertificate(
  trx: Transaction<RegistryTables>,
  enrollment: Pick<EnrollmentRow, "id">,
  { fingerprint, expireMs }: Issued,
  now: number,
): Promise<void> {
  await trx.deleteFrom("device_certificates").where("expire_ms", "<", now).execute();
  const row = { fingerprint, enrollment_id: enrollment.id, expire_ms: expireMs };
  await trx.insertInto("device_certificates").values(row).execute();
  await trx
    .updateTable("enrollments")
    .set({ certificate_expire_ms: expireMs })
    .where("id", "=", enrollment.id)
    .execute();
}
