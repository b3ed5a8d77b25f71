import type { QueryCreator } from "kysely";
import { EnrolmentState as State } from "../../../gen/ts/reeve/registry/v1/enrolment_service_pb.ts";
import type { RegistryTables } from "../tables.ts";
import { noEnrolment } from "./refusals.ts";
import type { EnrolmentRow } from "./rows.ts";

/** A database, or a transaction in it. */
type Tables = Pick<QueryCreator<RegistryTables>, "selectFrom">;

/** The enrolment with this id. UNKNOWN_DEVICE where there is none. */
export async function findEnrolment(tables: Tables, id: string): Promise<EnrolmentRow> {
  const row = await tables.selectFrom("enrolments").selectAll().where("id", "=", id).executeTakeFirst();
  if (row === undefined) throw noEnrolment(id);
  return row;
}

/** The enrolment in force of a device. UNKNOWN_DEVICE where it has none. */
export async function enrolmentOfDevice(tables: Tables, deviceId: string): Promise<EnrolmentRow> {
  const rows = await tables
    .selectFrom("enrolments")
    .selectAll()
    .where("device_id", "=", deviceId)
    .where("state", "!=", State.UNSPECIFIED)
    .orderBy("row", "desc")
    .execute();
  return bestOf(rows, deviceId);
}

/** How much an enrolment in this state is meant by a name; the newest of the highest counts. */
const WEIGHT: Readonly<Partial<Record<number, number>>> = {
  [State.ENROLLED]: 4,
  [State.LOCKED]: 4,
  [State.PENDING]: 3,
  [State.INVITED]: 2,
  [State.REMOVED]: 1,
};

/**
 * The enrolment that a device's id, its name or the enrolment's own id means: one in force before one that is open, and
 * a removed one last. UNKNOWN_DEVICE where there is none.
 */
export async function resolveEnrolment(tables: Tables, what: string): Promise<EnrolmentRow> {
  const rows = await tables
    .selectFrom("enrolments")
    .selectAll()
    .where((where) => where.or([where("device_id", "=", what), where("name", "=", what), where("id", "=", what)]))
    .where("state", "!=", State.UNSPECIFIED)
    .orderBy("row", "desc")
    .execute();
  return bestOf(rows, what);
}

function bestOf(rows: EnrolmentRow[], what: string): EnrolmentRow {
  const [best] = rows.sort((a, b) => (WEIGHT[b.state] ?? 0) - (WEIGHT[a.state] ?? 0));
  if (best === undefined) throw noEnrolment(what);
  return best;
}
