import { DeviceIdentityChange } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import {
  type ConfirmEnrollmentRequest,
  type Enrollment,
  EnrollmentState as State,
} from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { invalidInput } from "../../../lib/fault/invalid-input.ts";
import type { EnrollmentParts } from "./parts.ts";
import { joinRefused } from "./refusals.ts";
import { type EnrollmentRow, findEnrollment, stateAt, toEnrollment } from "./store.ts";

/**
 * Confirms a device's key; the device fetches its certificate by itself. Confirming again changes nothing. INVALID_INPUT
 * where the fingerprint is not the device's, JOIN_REFUSED where the token has expired meanwhile.
 */
export async function confirmEnrollment(
  parts: EnrollmentParts,
  { enrollmentId, fingerprint }: ConfirmEnrollmentRequest,
  actor: string,
): Promise<Enrollment> {
  const changeId = await parts.writes.write(async (trx) => {
    const row = await findEnrollment(trx, enrollmentId);
    requireConfirmable(row, fingerprint, parts.now());
    if (row.state === State.ENROLLED) return undefined;
    return parts.changes.plan(
      trx,
      {
        change: DeviceIdentityChange.ENROLLED,
        changeId: `${row.id}/enrolled`,
        enrollmentId: row.id,
        deviceId: row.device_id,
        name: row.name,
        fingerprint: row.fingerprint,
        actor,
      },
      { kind: "state", enrollmentId: row.id, from: [State.PENDING], to: State.ENROLLED },
    );
  });
  if (changeId !== undefined) await parts.changes.applied(changeId);
  return toEnrollment(await findEnrollment(parts.db, enrollmentId), parts.now());
}

function requireConfirmable(row: EnrollmentRow, fingerprint: string, now: number): void {
  switch (stateAt(row, now)) {
    case State.PENDING:
    case State.ENROLLED:
      break;
    case State.EXPIRED:
      throw joinRefused("expired", "the token expired before the device was confirmed; make a new one");
    case State.INVITED:
      throw invalid("enrollmentId", "no device has shown this token yet");
    default:
      throw invalid("enrollmentId", "this enrollment is locked or removed");
  }
  if (fingerprint !== row.fingerprint) {
    throw invalid("fingerprint", "this is not the fingerprint of the key that showed the token; compare again");
  }
}

function invalid(field: string, problem: string): Error {
  return invalidInput([{ field, rule: "enrollment", message: problem }]);
}
