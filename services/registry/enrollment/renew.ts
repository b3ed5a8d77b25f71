import { DeviceIdentityChange } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { RenewCertificateRequest } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { EnrollmentState as State } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { identityRefused } from "../../../lib/auth/peer.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { invalidInput } from "../../../lib/fault/invalid-input.ts";
import { CertificateRequestError, checkRequest } from "../../../lib/identity/request.ts";
import { keepCertificate, signFor } from "./certificates.ts";
import { requirePki } from "./create-join-token.ts";
import { lockCloned } from "./lock.ts";
import type { EnrollmentParts } from "./parts.ts";
import { deviceLocked } from "./refusals.ts";
import { type EnrollmentRow, enrollmentOfDevice } from "./store.ts";

/**
 * Gives a device a new certificate for the key it has enrolled with. The number of the renewal has to be higher than any
 * before: one that comes again shows that the device's state is in two places, and locks the device; so does one that is
 * lower, the second time. The number is kept before anything else is done, so that it counts whatever becomes of this
 * renewal. The certificate is signed once the renewal is on record.
 *
 * @param left aborted when the device has hung up or its time is over.
 */
export async function renewCertificate(
  parts: EnrollmentParts,
  request: RenewCertificateRequest,
  deviceId: string,
  left: AbortSignal,
): Promise<{ certificateChain: string; trustedAuthorities: string }> {
  const { authorities, own } = requirePki(parts);
  const { publicKey, fingerprint } = await checkRequest(request.certificateRequest).catch(invalidRequest);
  const count = Number(request.renewCount);
  const { row, before } = await parts.writes.write(async (trx) => {
    const current = requireEnrolled(await enrollmentOfDevice(trx, deviceId), fingerprint);
    // The device may have given up and asked with a higher number since: nothing is to be learned from this one.
    if (left.aborted) throw askAgain("the device has given this renewal up");
    if (count > current.renew_count) {
      await trx.updateTable("enrollments").set({ renew_count: count }).where("id", "=", current.id).execute();
    }
    return { row: current, before: current.renew_count };
  });
  if (count <= before) return refuseLow(parts, deviceId, count === before);
  await parts.changes.record({
    change: DeviceIdentityChange.RENEWED,
    changeId: `${row.id}/renewed/${count}`,
    enrollmentId: row.id,
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

/**
 * A number that comes a second time is that of two devices. One that is lower than another may have come late, since a
 * device does not wait for ever; when it happens again, it has not.
 */
async function refuseLow(parts: EnrollmentParts, deviceId: string, isSame: boolean): Promise<never> {
  if (!isSame && !parts.lowRenewals.add(deviceId))
    throw askAgain("a renewal with a higher number was asked for before");
  await lockCloned(parts, deviceId, "a renewal came with a number that was used before");
  throw identityRefused("cloned", deviceId);
}

function askAgain(what: string): Error {
  return fault(ErrorReason.NOT_READY, {}, { message: `${what}; renew again` });
}

function requireEnrolled(row: EnrollmentRow, fingerprint: string): EnrollmentRow {
  if (row.state === State.LOCKED)
    throw row.cloned === 1 ? identityRefused("cloned", row.device_id) : deviceLocked(row.device_id, row);
  if (row.state !== State.ENROLLED) throw identityRefused("revoked", row.device_id);
  if (row.fingerprint === fingerprint) return row;
  const message = "a renewal is for the key that the device has enrolled with";
  throw invalidInput([{ field: "certificateRequest", rule: "key", message }]);
}

function invalidRequest(error: unknown): never {
  if (!(error instanceof CertificateRequestError)) throw error;
  const message = `certificateRequest: ${error.message}`;
  throw fault(ErrorReason.INVALID_INPUT, { field: "certificateRequest", rule: "pkcs10" }, { message, cause: error });
}
