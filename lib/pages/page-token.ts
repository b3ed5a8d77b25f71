import { invalidInput } from "../fault/invalid-input.ts";

/** A page token: where the next page goes on. Opaque to callers. */
export function writePageToken(position: number): string {
  return Buffer.from(`p${position}`).toString("base64url");
}

/** The position in a page token; undefined for an empty one. INVALID_INPUT for anything that `writePageToken` did not write. */
export function readPageToken(token: string): number | undefined {
  if (token === "") return undefined;
  const found = /^p(\d{1,15})$/.exec(Buffer.from(token, "base64url").toString());
  if (found?.[1] !== undefined) return Number(found[1]);
  throw invalidInput([{ field: "pageToken", rule: "page_token", message: "not a token of this list" }]);
}
