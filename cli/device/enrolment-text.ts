import { type Enrolment, EnrolmentStateSchema } from "../../gen/ts/reeve/registry/v1/enrolment_service_pb.ts";
import { enumName } from "../print/enum-name.ts";
import type { Style } from "../print/style.ts";
import { table } from "../print/table.ts";
import { timeText } from "../print/time.ts";
import { lockText } from "./lock-text.ts";

const COLUMNS = ["ID", "NAME", "STATE", "DEVICE", "FINGERPRINT", "UNTIL", "WHY"];

/** Enrolments as a table, with the time until which the token, or the newest certificate, is good. */
export function enrolmentTable(enrolments: readonly Enrolment[], style: Style): string {
  const paint = (text: string, column: number) => {
    if (COLUMNS[column] !== "STATE") return text;
    if (text === "pending") return style.yellow(text);
    return text === "locked" ? style.red(text) : text;
  };
  return table(COLUMNS, enrolments.map(rowOf), { style, paint });
}

function rowOf(enrolment: Enrolment): string[] {
  return [
    enrolment.id,
    enrolment.name,
    enumName(EnrolmentStateSchema, enrolment.state),
    enrolment.deviceId,
    // Enough to find the one; `confirm` shows the whole.
    enrolment.fingerprint === "" ? "" : `${enrolment.fingerprint.slice(0, 23)}…`,
    timeText(enrolment.certificateExpireTime ?? enrolment.expireTime),
    enrolment.lockTime === undefined ? enrolment.why : lockText(enrolment),
  ];
}
