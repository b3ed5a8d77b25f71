import type { Transaction } from "kysely";
import { DeviceIdentityChange } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { EnrollmentState as State } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import type { RegistryTables } from "../tables.ts";
import type { Apply, Changes, Effect } from "./changes.ts";
import { recordOf } from "./lock.ts";
import type { EnrolledFleet } from "./parts.ts";
import { type EnrollmentRow, findEnrollment, LIVE } from "./store.ts";

/** What effects work on. */
export interface EffectOptions {
  changes(): Changes;
  fleet: EnrolledFleet;
  /** How long a certificate is valid: for as long an authority that signs no more stays trusted. Milliseconds. */
  certificateTtlMs: number;
  now(): number;
}

/** Brings about what was planned and is now on record. */
export function createApply(options: EffectOptions): Apply {
  return (trx, effect) =>
    effect.kind === "state" ? changeState(trx, effect, options) : changeSigner(trx, effect.id, options);
}

async function changeState(
  trx: Transaction<RegistryTables>,
  { enrollmentId, from, to }: Effect & { kind: "state" },
  options: EffectOptions,
): Promise<(() => Promise<void>) | undefined> {
  const update = trx.updateTable("enrollments").set({ state: to, why: "", cloned: 0 });
  const { numUpdatedRows } = await update.where("id", "=", enrollmentId).where("state", "in", from).executeTakeFirst();
  // An operator has removed it meanwhile.
  if (numUpdatedRows === 0n || to !== State.ENROLLED) return undefined;
  const row = await findEnrollment(trx, enrollmentId);
  const { fleet } = options;
  if (!from.includes(State.LOCKED)) {
    await replaceOthers(trx, row, options);
    // A device that is dialed has a pin and no enrollment.
    await fleet.free(trx, row.name, row.device_id);
  }
  await fleet.recheck(trx, row.device_id);
  return fleet.announce;
}

/** Removes what had the name before. */
async function replaceOthers(
  trx: Transaction<RegistryTables>,
  { id, name, device_id: deviceId }: EnrollmentRow,
  { changes, fleet }: EffectOptions,
): Promise<void> {
  const others = await trx
    .selectFrom("enrollments")
    .selectAll()
    .where("name", "=", name)
    .where("id", "!=", id)
    .where("state", "in", [...LIVE])
    .execute();
  for (const other of others) {
    const why = `replaced by ${id}`;
    await trx.updateTable("enrollments").set({ state: State.REMOVED, why }).where("id", "=", other.id).execute();
    await changes().note(trx, recordOf(other, DeviceIdentityChange.REMOVED, { actor: deviceId, why }));
    if (other.device_id !== deviceId) await fleet.forget(trx, other.device_id);
  }
}

async function changeSigner(
  trx: Transaction<RegistryTables>,
  id: string,
  { certificateTtlMs, now }: EffectOptions,
): Promise<undefined> {
  const next = await trx.selectFrom("device_authorities").select("id").where("id", "=", id).executeTakeFirst();
  if (next === undefined) return;
  const trustEnd = now() + certificateTtlMs;
  await trx
    .updateTable("device_authorities")
    .set({ signs: 0, trust_end_ms: trustEnd })
    .where("signs", "=", 1)
    .execute();
  await trx.updateTable("device_authorities").set({ signs: 1 }).where("id", "=", id).execute();
}
