import { Code, ConnectError } from "@connectrpc/connect";
import type { Authority } from "../../gen/ts/reeve/enrollment/v1/authority_service_pb.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import type { Session } from "../session.ts";

/** The authorities that sign the certificates of devices; undefined where the registry enrolls no devices. */
export async function listAuthorities({ authorities }: Pick<Session, "authorities">): Promise<Authority[] | undefined> {
  try {
    return (await authorities.listAuthorities({})).authorities;
  } catch (error: unknown) {
    if (isNotServed(error)) return undefined;
    throw error;
  }
}

// A registry without the service answers as for any path that it does not have: without a typed reason.
function isNotServed(error: unknown): boolean {
  if (!(error instanceof ConnectError) || faultDetail(error) !== undefined) return false;
  return error.code === Code.Unimplemented || error.code === Code.NotFound;
}
