import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Approval, ApprovalState } from "../../../gen/ts/reeve/policy/v1/approval_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { readPageToken, writePageToken } from "../../../lib/pages/page-token.ts";
import type { PolicyDatabase } from "../tables.ts";
import { approvalOf } from "./approval-message.ts";
import type { ApprovalRow, ApprovalStore } from "./approval-store.ts";

/** Some approvals, and where the next page starts; empty on the last page. */
export interface ApprovalPage {
  approvals: Approval[];
  nextPageToken: string;
}

const DEFAULT_PAGE_SIZE = 50;

/** About how large a page becomes, in bytes. */
const MAX_PAGE_BYTES = 1024 * 1024;

/** One approval. Throws NOT_FOUND. */
export async function getApproval(db: PolicyDatabase, store: ApprovalStore, id: string): Promise<Approval> {
  const row = await store.find(db, id);
  if (row) return approvalOf(row);
  throw fault(ErrorReason.NOT_FOUND, { resource: `approvals/${id}` }, { message: "no such approval" });
}

/**
 * A page of approvals, newest first; shorter than asked for where the cards are long. Throws INVALID_INPUT for a page
 * token that is none.
 */
export async function listApprovals(
  db: PolicyDatabase,
  store: ApprovalStore,
  request: { state: ApprovalState; pageSize: number; pageToken: string },
): Promise<ApprovalPage> {
  const size = request.pageSize === 0 ? DEFAULT_PAGE_SIZE : request.pageSize;
  const below = readPageToken(request.pageToken) ?? Number.MAX_SAFE_INTEGER;
  const rows = await store.page(db, { state: request.state, below, limit: size + 1 });
  const shown = fitting(rows.slice(0, size));
  const last = shown.at(-1);
  const nextPageToken = last && rows.length > shown.length ? writePageToken(last.seq) : "";
  return { approvals: shown.map(approvalOf), nextPageToken };
}

// Cards can be long, and a message may not be: a page ends early rather than not arriving.
function fitting(rows: readonly ApprovalRow[]): ApprovalRow[] {
  let bytes = 0;
  return rows.filter((row, index) => {
    bytes += row.spec.length;
    return index === 0 || bytes <= MAX_PAGE_BYTES;
  });
}
