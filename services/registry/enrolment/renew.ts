import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { RenewCertificateRequest } from "../../../gen/ts/reeve/registry/v1/enrolment_service_pb.ts";
import { EnrolmentState as State } from "../../../gen/ts/reeve/registry/v1/enrolment_service_pb.ts";
import { identityRefused } from "../../../lib/auth/peer.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { CertificateRequestError, checkRequest } from "../../../lib/identity/request.ts";
import { keepCertificate, signFor } from "./certificates.ts";
import { requirePki } from "./create-join-token.ts";
import { lockCloned } from "./lock.ts";
import type { EnrolmentParts } from "./parts.ts";
import { deviceLocked } from "./refusals.ts";
import type { EnrolmentRow } from "./rows.ts";
import { enrolmentOfDevice } from "./store.ts";

/**
 * Gives a device a new certificate for the key it has enrolled with. The number of the renewal has to be higher than any
 * before: one that comes again shows that the device's state is in two places, and locks the device. The number is kept
 * before anything else is done, so that it counts whatever becomes of this renewal. The certificate is signed once the
 * renewal is on record.
 */
export async function renewCertificate(
  parts: EnrolmentParts,
  request: RenewCertificateRequest,
  deviceId: string,
): Promise<{ certificateChain: string; trustedAuthorities: string }> {
  const { authorities, own } = requirePki(parts);
  const { publicKey, fingerprint } = await checkRequest(request.certificateRequest).catch(invalidRequest);
  const count = Number(request.renewCount);
  const row = await parts.writes.write(async (trx) => {
    const current = requireEnrolled(await enrolmentOfDevice(trx, deviceId), fingerprint);
    if (count <= current.renew_count) return undefined;
    await trx.updateTable("enrolments").set({ renew_count: count }).where("id", "=", current.id).execute();
    return current;
  });
  if (row === undefined) {
    await lockCloned(parts, deviceId, "a renewal came with a number that was used before");
    throw identityRefused("cloned", deviceId);
  }
  await parts.changes.record({
    change: "renewed",
    changeId: `${row.id}/renewed/${count}`,
    enrolmentId: row.id,
    deviceId,
    name: row.name,
    fingerprint,
    actor: deviceId,
  });
  const now = parts.now();
  const { trustDomain, certificateTtlMs: ttlMs } = parts;
  const issued = await signFor(deviceId, publicKey, { authorities, trustDomain, ttlMs, now });
  await parts.writes.write((trx) => keepCertificate(trx, row, issued, now));
  return { certificateChain: issued.chain, trustedAuthorities: own.current().ca };
}

function requireEnrolled(row: EnrolmentRow, fingerprint: string): EnrolmentRow {
  if (row.state === State.LOCKED)
    throw row.cloned === 1 ? identityRefused("cloned", row.device_id) : deviceLocked(row.device_id, row.why);
  if (row.state !== State.ENROLLED) throw identityRefused("revoked", row.device_id);
  if (row.fingerprint === fingerprint) return row;
  const message = "certificateRequest: a renewal is for the key that the device has enrolled with";
  throw fault(ErrorReason.INVALID_INPUT, { field: "certificateRequest", rule: "key" }, { message });
}

function invalidRequest(error: unknown): never {
  if (!(error instanceof CertificateRequestError)) throw error;
  const message = `certificateRequest: ${error.message}`;
  throw fault(ErrorReason.INVALID_INPUT, { field: "certificateRequest", rule: "pkcs10" }, { message, cause: error });
}
