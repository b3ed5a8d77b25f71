import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../lib/fault/fault.ts";

/** The row that a page starts at; undefined for the first page. Throws INVALID_INPUT for a token that is none of ours. */
export function readPageToken(token: string): number | undefined {
  if (token === "") return undefined;
  const row = /^\d{1,16}$/.test(token) ? Number(token) : Number.NaN;
  if (Number.isSafeInteger(row)) return row;
  const message = "pageToken: not a token of this list";
  throw fault(ErrorReason.INVALID_INPUT, { field: "pageToken", rule: "page_token" }, { message });
}
