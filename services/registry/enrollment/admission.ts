import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ConnectError } from "@connectrpc/connect";
import type { Transaction } from "kysely";
import { type DeviceLock, DeviceLockSchema } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { EnrollmentState as State } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { identityRefused, type KnownPeer } from "../../../lib/auth/peer.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { AdmittedDevice, ShownDevice } from "../devices/admission.ts";
import type { RegistryTables } from "../tables.ts";
import { createDoubtful } from "./doubtful.ts";
import { deviceLocked, type KeptLock } from "./refusals.ts";
import { LIVE, labelsText } from "./store.ts";

/** Who may take part. */
export interface Admission {
  /**
   * Throws DEVICE_LOCKED, or IDENTITY_REFUSED for a device that was cloned or removed, that never enrolled, or that calls
   * itself something else than it enrolled as.
   */
  mayAttach(deviceId: string, shown?: ShownDevice): Promise<void>;
  /** The same for many devices at once: the fault of each that may not, by its id. Within a transaction, as that sees it. */
  refusals(devices: readonly AdmittedDevice[], trx?: Transaction<RegistryTables>): Promise<ReadonlyMap<string, Error>>;
  /** For the very certificate that was shown: one from before a new enrollment is refused as revoked. */
  checkPeer(peer: KnownPeer): Promise<void>;
  /** DEVICE_LOCKED, for the callers of a device that is locked; undefined for one that is not. */
  lockOf(deviceId: string): Promise<ConnectError | undefined>;
  /** The locks there are, by the devices' ids. */
  locks(): Promise<ReadonlyMap<string, DeviceLock>>;
}

interface EnrolledState extends KeptLock {
  state: number;
  device_id: string;
  cloned: number;
  certificate_expire_ms: number | null;
}

interface EnrolledAs extends EnrolledState {
  name: string;
  labels: string;
}

/** So many devices are asked about in one statement, which takes only so many parameters. */
const MAX_AT_ONCE = 1000;

/**
 * Asks the database each time: what an operator has just locked is locked.
 *
 * @param canEnroll False in cleartext, where no device shows a certificate and none can enroll: then all may attach.
 */
export function createAdmission(db: Database<RegistryTables>, canEnroll: boolean, now: () => number): Admission {
  const columns = [
    "enrollments.state",
    "enrollments.device_id",
    "enrollments.why",
    "enrollments.cloned",
    "enrollments.lock_ms",
    "enrollments.locked_by",
    "enrollments.certificate_expire_ms",
  ] as const;
  const doubtful = createDoubtful(db);
  const statesOf = (deviceIds: readonly string[], tables: Pick<Database<RegistryTables>, "selectFrom">) =>
    tables
      .selectFrom("enrollments")
      .select([...columns, "enrollments.name", "enrollments.labels"])
      .where("device_id", "in", deviceIds)
      .where("state", "in", [...LIVE, State.REMOVED])
      .orderBy("row", "desc")
      .execute();
  const requireAdmitted = ({ deviceId, shown }: AdmittedDevice, rows: readonly EnrolledAs[]): void => {
    if (rows.length === 0 && (shown?.isDialed || !canEnroll)) return;
    const current = rows.find(({ state }) => state !== State.REMOVED);
    requireGood(current, deviceId);
    // A stream may outlive the certificate it began with, but not the newest one.
    if (now() >= (current?.certificate_expire_ms ?? Infinity)) throw identityRefused("expired", deviceId);
    if (shown !== undefined && current !== undefined) requireSame(current, shown, deviceId);
  };
  const refusals = async (devices: readonly AdmittedDevice[], trx?: Transaction<RegistryTables>) => {
    const refused = new Map<string, Error>();
    // In cleartext none has enrolled, and all would be doubtful.
    const asked = trx === undefined && canEnroll ? await doubtful(devices, now()) : devices;
    for (let start = 0; start < asked.length; start += MAX_AT_ONCE) {
      const some = asked.slice(start, start + MAX_AT_ONCE);
      const ids = some.map(({ deviceId }) => deviceId);
      const rows = Map.groupBy(await statesOf(ids, trx ?? db), ({ device_id }) => device_id);
      for (const device of some) {
        const error = thrownBy(() => requireAdmitted(device, rows.get(device.deviceId) ?? []));
        if (error !== undefined) refused.set(device.deviceId, error);
      }
    }
    return refused;
  };

  return {
    async mayAttach(deviceId, shown) {
      requireAdmitted({ deviceId, shown }, await statesOf([deviceId], db));
    },
    refusals,
    async checkPeer({ identity, fingerprint }) {
      if (identity.kind !== "device") return;
      const found = await db
        .selectFrom("device_certificates")
        .innerJoin("enrollments", "enrollments.id", "device_certificates.enrollment_id")
        .select(columns)
        .where("device_certificates.fingerprint", "=", fingerprint)
        .executeTakeFirst();
      requireGood(found?.device_id === identity.id ? found : undefined, identity.id);
    },
    async lockOf(deviceId) {
      const row = (await statesOf([deviceId], db)).find(({ state }) => state === State.LOCKED);
      return row && deviceLocked(row.name, row);
    },
    async locks() {
      const rows = await db
        .selectFrom("enrollments")
        .select(["device_id", "why", "lock_ms", "locked_by"])
        .where("state", "=", State.LOCKED)
        .execute();
      return new Map(rows.map((row) => [row.device_id, toLock(row)]));
    },
  };
}

function toLock({ why, lock_ms: sinceMs, locked_by: lockedBy }: KeptLock): DeviceLock {
  return create(DeviceLockSchema, { why, lockedBy, ...(sinceMs !== null && { lockTime: timestampFromMs(sinceMs) }) });
}

function requireGood(found: EnrolledState | undefined, deviceId: string): void {
  if (found?.state === State.ENROLLED) return;
  if (found?.state !== State.LOCKED) throw identityRefused("revoked", deviceId);
  if (found.cloned === 1) throw identityRefused("cloned", deviceId);
  throw deviceLocked(deviceId, found);
}

function requireSame(row: { name: string; labels: string }, { name, labels }: ShownDevice, deviceId: string): void {
  if (row.name === name && row.labels === labelsText(labels)) return;
  const message = "the device's manifest says another name, or other labels, than it enrolled with";
  throw identityRefused("malformed", deviceId, { message });
}

function thrownBy(run: () => void): Error | undefined {
  try {
    run();
    return undefined;
  } catch (error: unknown) {
    return error instanceof Error ? error : new Error(String(error));
  }
}
