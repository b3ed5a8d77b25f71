import type { QueryCreator } from "kysely";
import { EnrollmentState as State } from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import type { RegistryTables } from "../tables.ts";
import { noEnrollment } from "./refusals.ts";
import type { EnrollmentRow } from "./rows.ts";

/** A database, or a transaction in it. */
type Tables = Pick<QueryCreator<RegistryTables>, "selectFrom">;

/** The enrollment with this id. UNKNOWN_DEVICE where there is none. */
export async function findEnrollment(tables: Tables, id: string): Promise<EnrollmentRow> {
  const row = await tables.selectFrom("enrollments").selectAll().where("id", "=", id).executeTakeFirst();
  if (row === undefined) throw noEnrollment(id);
  return row;
}

/** The enrollment in force of a device. UNKNOWN_DEVICE where it has none. */
export async function enrollmentOfDevice(tables: Tables, deviceId: string): Promise<EnrollmentRow> {
  const rows = await tables
    .selectFrom("enrollments")
    .selectAll()
    .where("device_id", "=", deviceId)
    .where("state", "!=", State.UNSPECIFIED)
    .orderBy("row", "desc")
    .execute();
  return bestOf(rows, deviceId);
}

/** How much an enrollment in this state is meant by a name; the newest of the highest counts. */
const WEIGHT: Readonly<Partial<Record<number, number>>> = {
  [State.ENROLLED]: 4,
  [State.LOCKED]: 4,
  [State.PENDING]: 3,
  [State.INVITED]: 2,
  [State.REMOVED]: 1,
};

/**
 * The enrollment that a device's id, its name or the enrollment's own id means: one in force before one that is open, and
 * a removed one last. UNKNOWN_DEVICE where there is none.
 */
export async function resolveEnrollment(tables: Tables, what: string): Promise<EnrollmentRow> {
  const rows = await tables
    .selectFrom("enrollments")
    .selectAll()
    .where((where) => where.or([where("device_id", "=", what), where("name", "=", what), where("id", "=", what)]))
    .where("state", "!=", State.UNSPECIFIED)
    .orderBy("row", "desc")
    .execute();
  return bestOf(rows, what);
}

function bestOf(rows: EnrollmentRow[], what: string): EnrollmentRow {
  const [best] = rows.sort((a, b) => (WEIGHT[b.state] ?? 0) - (WEIGHT[a.state] ?? 0));
  if (best === undefined) throw noEnrollment(what);
  return best;
}
