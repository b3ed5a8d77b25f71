import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Authority,
  AuthoritySchema,
  type Enrollment,
  type ListEnrollmentsRequest,
  EnrollmentState as State,
} from "../../../gen/ts/reeve/enrollment/v1/enrollment_service_pb.ts";
import { readPageToken, writePageToken } from "../../../lib/pages/page-token.ts";
import type { AuthorityRow } from "./authorities.ts";
import type { EnrollmentParts } from "./parts.ts";
import { toEnrollment } from "./rows.ts";

/** How many enrollments a page holds by default. */
const DEFAULT_PAGE = 100;

/** Enrollments, newest first, a page at a time. */
export async function listEnrollments(
  { db, now }: EnrollmentParts,
  { state, pageSize, pageToken }: ListEnrollmentsRequest,
): Promise<{ enrollments: Enrollment[]; nextPageToken: string }> {
  const size = pageSize === 0 ? DEFAULT_PAGE : pageSize;
  const before = readPageToken(pageToken);
  const at = now();
  const isOpen = state === State.INVITED || state === State.PENDING;
  let query = db.selectFrom("enrollments").selectAll().where("state", "!=", State.UNSPECIFIED);
  if (state === State.EXPIRED) query = query.where("state", "in", [State.INVITED, State.PENDING]);
  else if (state !== State.UNSPECIFIED) query = query.where("state", "=", state);
  if (state === State.EXPIRED) query = query.where("expire_ms", "<=", at);
  if (isOpen) query = query.where("expire_ms", ">", at);
  if (before !== undefined) query = query.where("row", "<", before);
  const rows = await query
    .orderBy("row", "desc")
    .limit(size + 1)
    .execute();
  const page = rows.slice(0, size);
  const last = rows.length > size ? page.at(-1) : undefined;
  return {
    enrollments: page.map((row) => toEnrollment(row, at)),
    nextPageToken: last === undefined ? "" : writePageToken(last.row),
  };
}

/** An authority for its callers. */
export function toAuthority(row: AuthorityRow): Authority {
  return create(AuthoritySchema, {
    id: row.id,
    certificate: row.certificate,
    signs: row.signs === 1,
    createTime: timestampFromMs(row.create_ms),
    ...(row.trust_end_ms === null ? {} : { trustEndTime: timestampFromMs(row.trust_end_ms) }),
  });
}
