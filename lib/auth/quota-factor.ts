import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Principal } from "./principal.ts";

/** How much more than an agent a principal may have open or waiting. */
export function quotaFactor({ roles }: Pick<Principal, "roles">): number {
  return roles.includes(Role.OPERATOR) ? 8 : 1;
}
