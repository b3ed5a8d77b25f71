import { type Enrollment, EnrollmentStateSchema } from "../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { enumName } from "../print/enum-name.ts";
import { listTable } from "../print/table.ts";
import { ageText } from "../print/time.ts";
import { lockText } from "./lock-text.ts";

const COLUMNS = ["ID", "NAME", "STATE", "DEVICE", "FINGERPRINT", "MADE", "EXPIRES", "WHY"];

/** Enrollments as a table; the token expires, or the newest certificate. */
export function enrollmentTable(enrollments: readonly Enrollment[], context: CommandContext): string {
  const rows = enrollments.map((enrollment) => rowOf(enrollment, context.now()));
  const colors = { STATE: { pending: "yellow", locked: "red" } } as const;
  return listTable(COLUMNS, rows, context, { keep: ["ID", "NAME", "DEVICE"], colors });
}

function rowOf(enrollment: Enrollment, now: number): string[] {
  return [
    enrollment.id,
    enrollment.name,
    enumName(EnrollmentStateSchema, enrollment.state),
    enrollment.deviceId,
    // Enough to find the one; `confirm` shows all of it.
    enrollment.fingerprint === "" ? "" : `${enrollment.fingerprint.slice(0, 23)}…`,
    ageText(enrollment.createTime, now),
    ageText(enrollment.certificateExpireTime ?? enrollment.expireTime, now),
    enrollment.lockTime === undefined ? enrollment.why : lockText(enrollment),
  ];
}
