import { sql } from "kysely";
import { EnrollmentState as State } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import type { Database } from "../../../lib/store/database.ts";
import { dialectOf } from "../../../lib/store/dialect.ts";
import { prepared } from "../../../lib/store/prepared.ts";
import type { AdmittedDevice, ShownDevice } from "../devices/admission.ts";
import type { RegistryTables } from "../tables.ts";
import { LIVE, labelsText } from "./store.ts";

/** Between a name and its labels, which both have none. */
const SEPARATOR = "\n";

/** Each device as a member of a JSON object, since the same are compared again and again; undefined where it cannot be one. */
const members = new WeakMap<AdmittedDevice, string | undefined>();

function memberOf(device: AdmittedDevice): string | undefined {
  if (members.has(device)) return members.get(device);
  const member = device.shown && writeMember(device.deviceId, device.shown);
  members.set(device, member);
  return member;
}

/** Undefined for text that PostgreSQL takes in no JSON: a device that is dialed may say anything, and is compared with all others. */
function writeMember(deviceId: string, { name, labels }: ShownDevice): string | undefined {
  const texts = [deviceId, `${name}${SEPARATOR}${labelsText(labels)}`];
  if (texts.some((text) => !text.isWellFormed() || text.includes("\0"))) return undefined;
  return texts.map((text) => JSON.stringify(text)).join(":");
}

/**
 * Finds those of many devices that are to be looked at one by one: all but those that are what they enrolled as, with a
 * certificate that is valid, and of which no other enrollment is active. The database compares, and a thousand devices of which
 * none is doubtful give no row to read.
 */
export function createDoubtful(
  db: Database<RegistryTables>,
): (devices: readonly AdmittedDevice[], nowMs: number) => Promise<AdmittedDevice[]> {
  const find = prepared((p: { shown: string; nowMs: number }) => {
    const shown = dialectOf(db) === "postgres" ? sql`json_each_text(${p.shown}::json)` : sql`json_each(${p.shown})`;
    const isGood = sql<boolean>`state = ${sql.lit(State.ENROLLED)}
      and (certificate_expire_ms is null or certificate_expire_ms > ${p.nowMs})
      and name || ${sql.lit(SEPARATOR)} || labels = shown.value`;
    const active = db
      .selectFrom("enrollments")
      .select("id")
      .where("device_id", "=", sql.ref<string>("shown.key"))
      .where("state", "in", sql<number>`(${sql.join(LIVE.map((state) => sql.lit(state)))})`);
    return db
      .selectFrom(shown.as<"shown">(sql.id("shown")))
      .select(sql<string>`shown.key`.as("device_id"))
      .where(({ exists, not, or }) =>
        or([not(exists(active.where(isGood))), exists(active.where(sql<boolean>`not (${isGood})`))]),
      );
  });
  return async (devices, nowMs) => {
    const shown = devices.map(memberOf).filter((member) => member !== undefined);
    // A device that stands there twice is compared twice.
    const rows = await find.all(db, { shown: `{${shown.join(",")}}`, nowMs });
    const found = new Set(rows.map(({ device_id }) => device_id));
    return devices.filter((device) => memberOf(device) === undefined || found.has(device.deviceId));
  };
}
