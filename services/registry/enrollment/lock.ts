import { DeviceIdentityChange } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import {
  type Enrollment,
  EnrollmentState as State,
} from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import type { Effect } from "./changes.ts";
import type { EnrollmentParts } from "./parts.ts";
import { noEnrollment } from "./refusals.ts";
import { type EnrollmentRow, enrollmentOfDevice, findEnrollment, resolveEnrollment, toEnrollment } from "./store.ts";

/** Who changes what, and why. */
interface Order {
  /** The device, by id or name, or an enrollment by its id. */
  device: string;
  why: string;
  actor: string;
}

/** Locks a device: at once, recorded as soon as policy is available. Locking again changes nothing. */
export async function lockDevice(parts: EnrollmentParts, order: Order): Promise<Enrollment> {
  return toEnrollment(await shutOut(parts, order, DeviceIdentityChange.LOCKED), parts.now());
}

/** Removes a device, or an invitation: at once, recorded as soon as policy is available. Removing again changes nothing. */
export async function removeDevice(parts: EnrollmentParts, order: Order): Promise<Enrollment> {
  return toEnrollment(await shutOut(parts, order, DeviceIdentityChange.REMOVED), parts.now());
}

/** Unlocks a device once that is on record. */
export async function unlockDevice(parts: EnrollmentParts, { device, actor }: Omit<Order, "why">): Promise<Enrollment> {
  const { row, changeId } = await parts.writes.write(async (trx) => {
    const found = await resolveEnrollment(trx, device);
    if (found.state !== State.LOCKED && found.state !== State.ENROLLED) throw noEnrollment(device);
    if (found.state === State.ENROLLED) return { row: found, changeId: undefined };
    const effect: Effect = { kind: "state", enrollmentId: found.id, from: [State.LOCKED], to: State.ENROLLED };
    const record = recordOf(found, DeviceIdentityChange.UNLOCKED, { actor, why: "" });
    return { row: found, changeId: await parts.changes.plan(trx, record, effect) };
  });
  if (changeId !== undefined) await parts.changes.applied(changeId);
  return toEnrollment(await findEnrollment(parts.db, row.id), parts.now());
}

/** Locks a device whose state was found in two places; its streams end. Does nothing where it has not enrolled. */
export async function lockCloned(parts: EnrollmentParts, deviceId: string, why: string): Promise<void> {
  const isLocked = await parts.writes.write(async (trx) => {
    const row = await enrollmentOfDevice(trx, deviceId).catch(() => undefined);
    if (row?.state !== State.ENROLLED) return false;
    const set = { state: State.LOCKED, cloned: 1, why: `cloned: ${why}`, lock_ms: parts.now(), locked_by: deviceId };
    await trx.updateTable("enrollments").set(set).where("id", "=", row.id).execute();
    await parts.changes.note(trx, recordOf(row, DeviceIdentityChange.LOCKED, { actor: deviceId, why: set.why }));
    await parts.fleet.recheck(trx, deviceId);
    return true;
  });
  if (!isLocked) return;
  parts.logger.error({ device: deviceId, why }, "cloned device locked");
  parts.changes.wake();
  await parts.fleet.announce();
}

/** From which states a device can be locked or removed. */
const LOCKABLE: readonly number[] = [State.ENROLLED];
const REMOVABLE: readonly number[] = [State.ENROLLED, State.LOCKED, State.PENDING, State.INVITED];

async function shutOut(parts: EnrollmentParts, order: Order, change: DeviceIdentityChange): Promise<EnrollmentRow> {
  const [from, to] = change === DeviceIdentityChange.LOCKED ? [LOCKABLE, State.LOCKED] : [REMOVABLE, State.REMOVED];
  const row = await parts.writes.write(async (trx) => {
    const found = await resolveEnrollment(trx, order.device);
    if (found.state === to) return found;
    if (!from.includes(found.state)) throw noEnrollment(order.device);
    const lock = { lock_ms: parts.now(), locked_by: order.actor };
    const set = { state: to, why: order.why, ...(change === DeviceIdentityChange.LOCKED && lock) };
    await trx.updateTable("enrollments").set(set).where("id", "=", found.id).execute();
    await parts.changes.note(trx, recordOf(found, change, order));
    if (found.device_id !== "")
      await parts.fleet[change === DeviceIdentityChange.LOCKED ? "recheck" : "forget"](trx, found.device_id);
    return { ...found, ...set };
  });
  parts.changes.wake();
  await parts.fleet.announce();
  return row;
}

/** What is recorded of a change to an enrollment. */
export function recordOf(
  row: EnrollmentRow,
  change: DeviceIdentityChange,
  { actor, why }: Pick<Order, "actor" | "why">,
) {
  const { id: enrollmentId, device_id: deviceId, name, fingerprint } = row;
  return { change, enrollmentId, deviceId, name, fingerprint, actor, why };
}
