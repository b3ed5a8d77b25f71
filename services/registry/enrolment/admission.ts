import { EnrolmentState as State } from "../../../gen/ts/reeve/registry/v1/enrolment_service_pb.ts";
import { identityRefused, type KnownPeer } from "../../../lib/auth/peer.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { RegistryTables } from "../tables.ts";
import { deviceLocked } from "./refusals.ts";
import { LIVE, labelsText } from "./rows.ts";

/** What a device says of itself, and how it is reached. */
export interface ShownDevice {
  name: string;
  labels: Readonly<Record<string, string>>;
  /** The registry dials it, as its configuration says, so that it need not have enrolled. */
  isDialled: boolean;
}

/** Who may take part. */
export interface Admission {
  /**
   * Throws DEVICE_LOCKED, or IDENTITY_REFUSED for a device that was cloned or removed, that never enrolled, or that calls
   * itself something else than it enrolled as.
   */
  mayAttach(deviceId: string, shown?: ShownDevice): Promise<void>;
  /** For the very certificate that was shown: one from before a new enrolment is refused as revoked. */
  checkPeer(peer: KnownPeer): Promise<void>;
}

interface Standing {
  state: number;
  device_id: string;
  why: string;
  cloned: number;
  certificate_expire_ms: number | null;
}

/**
 * Asks the database each time: what an operator has just locked is locked.
 *
 * @param canEnrol False in cleartext, where nobody shows a certificate and nobody can enrol: then all may attach.
 */
export function createAdmission(db: Database<RegistryTables>, canEnrol: boolean, now: () => number): Admission {
  const columns = [
    "enrolments.state",
    "enrolments.device_id",
    "enrolments.why",
    "enrolments.cloned",
    "enrolments.certificate_expire_ms",
  ] as const;
  return {
    async mayAttach(deviceId, shown) {
      const rows = await db
        .selectFrom("enrolments")
        .select([...columns, "enrolments.name", "enrolments.labels"])
        .where("device_id", "=", deviceId)
        .where("state", "in", [...LIVE, State.REMOVED])
        .orderBy("row", "desc")
        .execute();
      if (rows.length === 0 && (shown?.isDialled || !canEnrol)) return;
      const current = rows.find(({ state }) => state !== State.REMOVED);
      requireGood(current, deviceId);
      // A stream may outlive the certificate it began with, but not the newest one.
      if (now() >= (current?.certificate_expire_ms ?? Infinity)) throw identityRefused("expired", deviceId);
      if (shown !== undefined && current !== undefined) requireSame(current, shown, deviceId);
    },
    async checkPeer({ identity, fingerprint }) {
      if (identity.kind !== "device") return;
      const standing = await db
        .selectFrom("device_certificates")
        .innerJoin("enrolments", "enrolments.id", "device_certificates.enrolment_id")
        .select(columns)
        .where("device_certificates.fingerprint", "=", fingerprint)
        .executeTakeFirst();
      requireGood(standing?.device_id === identity.id ? standing : undefined, identity.id);
    },
  };
}

function requireGood(standing: Standing | undefined, deviceId: string): void {
  if (standing?.state === State.ENROLLED) return;
  if (standing?.state !== State.LOCKED) throw identityRefused("revoked", deviceId);
  if (standing.cloned === 1) throw identityRefused("cloned", deviceId);
  throw deviceLocked(deviceId, standing.why);
}

function requireSame(row: { name: string; labels: string }, { name, labels }: ShownDevice, deviceId: string): void {
  if (row.name === name && row.labels === labelsText(labels)) return;
  const message = "the device's manifest says another name, or other labels, than it enrolled with";
  throw identityRefused("malformed", deviceId, { message });
}
