import { readPageToken, writePageToken } from "../../lib/pages/page-token.ts";

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
