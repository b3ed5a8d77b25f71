import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type Authority,
  AuthoritySchema,
  type Enrolment,
  type ListEnrolmentsRequest,
  EnrolmentState as State,
} from "../../../gen/ts/reeve/registry/v1/enrolment_service_pb.ts";
import { readPageToken, writePageToken } from "../../../lib/pages/page-token.ts";
import type { AuthorityRow } from "./authorities.ts";
import type { EnrolmentParts } from "./parts.ts";
import { toEnrolment } from "./rows.ts";

/** How many enrolments a page holds by default. */
const DEFAULT_PAGE = 100;

/** Enrolments, newest first, a page at a time. */
export async function listEnrolments(
  { db, now }: EnrolmentParts,
  { state, pageSize, pageToken }: ListEnrolmentsRequest,
): Promise<{ enrolments: Enrolment[]; nextPageToken: string }> {
  const size = pageSize === 0 ? DEFAULT_PAGE : pageSize;
  const before = readPageToken(pageToken);
  const at = now();
  const isOpen = state === State.INVITED || state === State.PENDING;
  let query = db.selectFrom("enrolments").selectAll().where("state", "!=", State.UNSPECIFIED);
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
    enrolments: page.map((row) => toEnrolment(row, at)),
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
