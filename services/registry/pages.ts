import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../lib/fault/fault.ts";

/** A page token: where the next page goes on. Opaque to callers. */
export function writePageToken(position: number): string {
  return Buffer.from(`p${position}`).toString("base64url");
}

/** The position in a page token; undefined for an empty one. INVALID_INPUT for anything that this service did not write. */
export function readPageToken(token: string): number | undefined {
  if (token === "") return undefined;
  const found = /^p(\d{1,15})$/.exec(Buffer.from(token, "base64url").toString());
  if (found?.[1] !== undefined) return Number(found[1]);
  throw fault(
    ErrorReason.INVALID_INPUT,
    { field: "pageToken", rule: "page_token" },
    { message: "pageToken: not a token of this list" },
  );
}

/** One page of a list that is in memory. */
export function pageOf<T>(
  all: readonly T[],
  pageSize: number,
  pageToken: string,
  byDefault: number,
): { page: readonly T[]; nextPageToken: string } {
  const start = readPageToken(pageToken) ?? 0;
  const end = start + (pageSize === 0 ? byDefault : pageSize);
  return { page: all.slice(start, end), nextPageToken: end < all.length ? writePageToken(end) : "" };
}
