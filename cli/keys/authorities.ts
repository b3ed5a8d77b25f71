import { Code, ConnectError } from "@connectrpc/connect";
import type { Authority } from "../../gen/ts/reeve/registry/v1/enrolment_service_pb.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import type { Session } from "../session.ts";

/** The authorities that sign the certificates of devices; undefined where the registry enrols no devices. */
export async function listAuthorities({ enrolment }: Pick<Session, "enrolment">): Promise<Authority[] | undefined> {
  try {
    return (await enrolment.listAuthorities({})).authorities;
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
