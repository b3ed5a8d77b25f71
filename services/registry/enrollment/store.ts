import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { QueryCreator, Selectable } from "kysely";
import {
  type Enrollment,
  EnrollmentSchema,
  type ListEnrollmentsRequest,
  EnrollmentState as State,
} from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { readPageToken, writePageToken } from "../../../lib/pages/page-token.ts";
import type { RegistryTables } from "../tables.ts";
import { noEnrollment } from "./refusals.ts";

/** An enrollment as it is stored. */
export type EnrollmentRow = Selectable<RegistryTables["enrollments"]>;

/** The states in which a name or a device is taken. */
export const LIVE: readonly State[] = [State.ENROLLED, State.LOCKED];

/** The state of an enrollment at that time: one that was not confirmed before its token expired is expired. */
export function stateAt(row: Pick<EnrollmentRow, "state" | "expire_ms">, now: number): State {
  const isOpen = row.state === State.INVITED || row.state === State.PENDING;
  return isOpen && row.expire_ms <= now ? State.EXPIRED : (row.state as State);
}

/** An enrollment for its callers. */
export function toEnrollment(row: EnrollmentRow, now: number): Enrollment {
  return create(EnrollmentSchema, {
    id: row.id,
    name: row.name,
    labels: labelsOf(row),
    state: stateAt(row, now),
    deviceId: row.device_id,
    fingerprint: row.fingerprint,
    why: row.why,
    createdBy: row.created_by,
    createTime: timestampFromMs(row.create_ms),
    expireTime: timestampFromMs(row.expire_ms),
    autoConfirm: row.auto_confirm === 1,
    ...(row.state === State.LOCKED && {
      lockedBy: row.locked_by,
      ...(row.lock_ms !== null && { lockTime: timestampFromMs(row.lock_ms) }),
    }),
    ...(row.certificate_expire_ms === null
      ? {}
      : { certificateExpireTime: timestampFromMs(row.certificate_expire_ms) }),
  });
}

/** The labels that the device must have. */
export function labelsOf(row: Pick<EnrollmentRow, "labels">): Record<string, string> {
  return JSON.parse(row.labels) as Record<string, string>;
}

/** Labels as they are stored: the same labels are the same text. */
export function labelsText(labels: Readonly<Record<string, string>>): string {
  return JSON.stringify(Object.fromEntries(Object.entries(labels).sort(([a], [b]) => (a < b ? -1 : 1))));
}

/** A database, or a transaction in it. */
type Tables = Pick<QueryCreator<RegistryTables>, "selectFrom">;

/** The enrollment with this id. UNKNOWN_DEVICE where there is none. */
export async function findEnrollment(tables: Tables, id: string): Promise<EnrollmentRow> {
  const row = await tables.selectFrom("enrollments").selectAll().where("id", "=", id).executeTakeFirst();
  if (row === undefined) throw noEnrollment(id);
  return row;
}

/** The active enrollment of a device. UNKNOWN_DEVICE where it has none. */
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
 * The enrollment that a device's id, its name or the enrollment's own id means: an active one before one that is open, and
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

/** How many enrollments a page holds by default. */
const DEFAULT_PAGE = 100;

/** Enrollments, newest first, a page at a time. */
export async function listEnrollments(
  tables: Tables,
  now: number,
  { state, pageSize, pageToken }: ListEnrollmentsRequest,
): Promise<{ enrollments: Enrollment[]; nextPageToken: string }> {
  const size = pageSize === 0 ? DEFAULT_PAGE : pageSize;
  const before = readPageToken(pageToken);
  const isOpen = state === State.INVITED || state === State.PENDING;
  let query = tables.selectFrom("enrollments").selectAll().where("state", "!=", State.UNSPECIFIED);
  if (state === State.EXPIRED) query = query.where("state", "in", [State.INVITED, State.PENDING]);
  else if (state !== State.UNSPECIFIED) query = query.where("state", "=", state);
  if (state === State.EXPIRED) query = query.where("expire_ms", "<=", now);
  if (isOpen) query = query.where("expire_ms", ">", now);
  if (before !== undefined) query = query.where("row", "<", before);
  const rows = await query
    .orderBy("row", "desc")
    .limit(size + 1)
    .execute();
  const page = rows.slice(0, size);
  const last = rows.length > size ? page.at(-1) : undefined;
  return {
    enrollments: page.map((row) => toEnrollment(row, now)),
    nextPageToken: last === undefined ? "" : writePageToken(last.row),
  };
}
