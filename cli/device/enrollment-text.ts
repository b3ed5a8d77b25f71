import { type Enrollment, EnrollmentStateSchema } from "../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { enumName } from "../print/enum-name.ts";
import type { Style } from "../print/style.ts";
import { table } from "../print/table.ts";
import { timeText } from "../print/time.ts";
import { lockText } from "./lock-text.ts";

const COLUMNS = ["ID", "NAME", "STATE", "DEVICE", "FINGERPRINT", "UNTIL", "WHY"];

/** Enrollments as a table, with the time until which the token, or the newest certificate, is good. */
export function enrollmentTable(enrollments: readonly Enrollment[], style: Style): string {
  const paint = (text: string, column: number) => {
    if (COLUMNS[column] !== "STATE") return text;
    if (text === "pending") return style.yellow(text);
    return text === "locked" ? style.red(text) : text;
  };
  return table(COLUMNS, enrollments.map(rowOf), { style, paint });
}

function rowOf(enrollment: Enrollment): string[] {
  return [
    enrollment.id,
    enrollment.name,
    enumName(EnrollmentStateSchema, enrollment.state),
    enrollment.deviceId,
    // Enough to find the one; `confirm` shows the whole.
    enrollment.fingerprint === "" ? "" : `${enrollment.fingerprint.slice(0, 23)}…`,
    timeText(enrollment.certificateExpireTime ?? enrollment.expireTime),
    enrollment.lockTime === undefined ? enrollment.why : lockText(enrollment),
  ];
}
