import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Selectable } from "kysely";
import {
  type Enrollment,
  EnrollmentSchema,
  EnrollmentState as State,
} from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import type { EnrollmentTables } from "./tables.ts";

/** An enrollment as it is stored. */
export type EnrollmentRow = Selectable<EnrollmentTables["enrollments"]>;

/** The states in which a name or a device is taken. */
export const LIVE: readonly State[] = [State.ENROLLED, State.LOCKED];

/** The state of an enrollment at that time: one that was not confirmed before its token expired is expired. */
export function stateAt(row: Pick<EnrollmentRow, "state" | "expire_ms">, now: number): State {
  const isOpen = row.state === State.INVITED || row.state === State.PENDING;
  return isOpen && row.expire_ms <= now ? State.EXPIRED : (row.state as State);
}

/** An enrollment for its callers. */
export function toEnrollment(row: EnrollmentRow, now: number): Enrollment {
  return create(EnrollmentSchema, {
    id: row.id,
    name: row.name,
    labels: labelsOf(row),
    state: stateAt(row, now),
    deviceId: row.device_id,
    fingerprint: row.fingerprint,
    why: row.why,
    createdBy: row.created_by,
    createTime: timestampFromMs(row.create_ms),
    expireTime: timestampFromMs(row.expire_ms),
    autoConfirm: row.auto_confirm === 1,
    ...(row.state === State.LOCKED && {
      lockedBy: row.locked_by,
      ...(row.lock_ms !== null && { lockTime: timestampFromMs(row.lock_ms) }),
    }),
    ...(row.certificate_expire_ms === null
      ? {}
      : { certificateExpireTime: timestampFromMs(row.certificate_expire_ms) }),
  });
}

/** The labels that the device must have. */
export function labelsOf(row: Pick<EnrollmentRow, "labels">): Record<string, string> {
  return JSON.parse(row.labels) as Record<string, string>;
}

/** Labels as they are stored: the same labels are the same text. */
export function labelsText(labels: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))));
}
