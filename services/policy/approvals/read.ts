import { create } from "@bufbuild/protobuf";
import { type Approval, ApprovalState } from "../../../gen/ts/reeve/approval/v1/approval_pb.ts";
import {
  type ApprovalFullText,
  ApprovalFullTextSchema,
  ApprovalView,
} from "../../../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { readPageToken, writePageToken } from "../../../lib/pages/page-token.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { NOT_SHOWN } from "../../../lib/tool/redact.ts";
import { type ToolLookup, validateRequest } from "../facts/decision-request.ts";
import type { PolicyDatabase } from "../storage/tables.ts";
import { approvalOf, specOf } from "./approval-message.ts";
import type { ApprovalRow, ApprovalStore } from "./approval-store.ts";
import type { HeldRequests } from "./held-requests.ts";
import { renderFull } from "./summary.ts";
import { summaryFactsOf } from "./summary-facts.ts";

/** Some approvals, and where the next page starts; empty on the last page. */
export interface ApprovalPage {
  approvals: Approval[];
  nextPageToken: string;
}

const DEFAULT_PAGE_SIZE = 50;

/** About how large a page becomes, in bytes. */
const MAX_PAGE_BYTES = 1024 * 1024;

export interface ReadOptions {
  db: PolicyDatabase;
  store: Pick<ApprovalStore, "find">;
  requests: Pick<HeldRequests, "find">;
  lookup: ToolLookup;
}

/** One approval, in the full view with all that would run. Throws NOT_FOUND. */
export async function getApproval(
  options: ReadOptions,
  id: string,
  view: ApprovalView,
): Promise<{ approval: Approval; fullText?: ApprovalFullText }> {
  const row = await options.store.find(options.db, id);
  if (row === undefined)
    throw fault(ErrorReason.NOT_FOUND, { resource: `approvals/${id}` }, { message: "no such approval" });
  const approval = approvalOf(row);
  const fullText = view === ApprovalView.FULL ? await fullTextOf(options, row) : undefined;
  return { approval, ...(fullText && { fullText }) };
}

/** All that would run, rendered from the request, which is kept for as long as the approval is pending. */
async function fullTextOf(
  { db, requests, lookup }: ReadOptions,
  row: ApprovalRow,
): Promise<ApprovalFullText | undefined> {
  if (row.state !== ApprovalState.PENDING) return undefined;
  const request = await requests.find(db, row.id);
  if (request === undefined) return undefined;
  const spec = specOf(row);
  const facts = summaryFactsOf(validateRequest(request, lookup), spec);
  const text = renderFull(facts);
  const digest = sha256Hex(text);
  // After an upgrade the tool's schema may be another one, and with it what is shown: then it is not what was asked.
  if (digest !== (row.full_digest || spec.summaryDigest)) return undefined;
  return create(ApprovalFullTextSchema, { text, digest, arguments: facts.args ?? { note: NOT_SHOWN } });
}

/**
 * A page of approvals, newest first; shorter than asked for where the summaries are long. Throws INVALID_INPUT for an invalid
 * page token.
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

// Summaries can be long, and a message may not be: a page ends early rather than not arriving.
function fitting(rows: readonly ApprovalRow[]): ApprovalRow[] {
  let bytes = 0;
  return rows.filter((row, index) => {
    bytes += row.spec.length;
    return index === 0 || bytes <= MAX_PAGE_BYTES;
  });
}
