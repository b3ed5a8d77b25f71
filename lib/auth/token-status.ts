import type { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { roleFromName } from "./roles.ts";
import type { TokenFile } from "./token-file.ts";

/** Whether a principal's token is still accepted. */
export type TokenStatus =
  /** Roles now; undefined for a principal that is no token, about which a token file says nothing. */
  { valid: true; roles: readonly Role[] | undefined } | { valid: false; why: "expired" | "revoked" };

/** A token's id; every other kind of principal has an id with a "/" or a "-" in it. */
const TOKEN_ID = /^[0-9a-f]{12}$/;

/** Finds by its id whether a principal's token still exists and has not expired. Throws where the file cannot be read. */
export function tokenStatuses(
  tokens: Pick<TokenFile, "listTokens">,
  now: () => number = Date.now,
): (principalId: string) => TokenStatus {
  return (principalId) => {
    if (!TOKEN_ID.test(principalId)) return { valid: true, roles: undefined };
    const entry = tokens.listTokens().find(({ id }) => id === principalId);
    if (entry === undefined) return { valid: false, why: "revoked" };
    if (entry.expires !== undefined && Date.parse(entry.expires) <= now()) return { valid: false, why: "expired" };
    return { valid: true, roles: entry.roles.flatMap((name) => roleFromName(name) ?? []) };
  };
}
