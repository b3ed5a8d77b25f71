import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";

/** A page token: where the next page goes on. Opaque to callers. */
export function writePageToken(position: number): string {
  return Buffer.from(`p${position}`).toString("base64url");
}

/** The position in a page token; undefined for an empty one. INVALID_INPUT for anything that `writePageToken` did not write. */
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
