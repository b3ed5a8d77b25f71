import { EnrollmentState as State } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import type { JoinWhy } from "./refusals.ts";
import { type EnrollmentRow, labelsText, stateAt } from "./rows.ts";

/** What a device that shows a token has proved. */
export interface Applicant {
  deviceId: string;
  /** Of its TLS key. */
  fingerprint: string;
  name: string;
  labels: Readonly<Record<string, string>>;
}

/** What comes of a token that was shown. */
export type JoinDecision =
  /** The first key to show it: the token is bound to it from now on. */
  | { kind: "bind" }
  /** The same key again, before an operator has confirmed it. */
  | { kind: "wait" }
  /** The same key again, confirmed: it gets its certificate. */
  | { kind: "certificate" }
  | { kind: "locked" }
  | { kind: "refused"; why: JoinWhy };

/** Decides about a token whose secret was right, shown by a device whose proofs are good. */
export function decideJoin(
  row: Pick<EnrollmentRow, "state" | "expire_ms" | "name" | "labels" | "fingerprint" | "device_id" | "renew_count">,
  applicant: Applicant,
  now: number,
): JoinDecision {
  const isBound = row.fingerprint !== "";
  if (isBound && (row.fingerprint !== applicant.fingerprint || row.device_id !== applicant.deviceId)) {
    return { kind: "refused", why: "used" };
  }
  switch (stateAt(row, now)) {
    case State.EXPIRED:
      return { kind: "refused", why: "expired" };
    case State.LOCKED:
      return { kind: "locked" };
    case State.ENROLLED:
      // A device that has renewed keeps its certificate; only a copy of its first days would still ask.
      return row.renew_count === 0 ? { kind: "certificate" } : { kind: "refused", why: "used" };
    case State.INVITED:
    case State.PENDING:
      break;
    default:
      return { kind: "refused", why: isBound ? "used" : "unknown" };
  }
  if (row.name !== applicant.name || row.labels !== labelsText(applicant.labels))
    return { kind: "refused", why: "name" };
  return isBound ? { kind: "wait" } : { kind: "bind" };
}
