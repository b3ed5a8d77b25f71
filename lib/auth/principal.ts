import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { fault } from "../fault/fault.ts";
import type { Peer } from "./peer.ts";
import { type PrincipalKind, roleName } from "./roles.ts";

export type { PrincipalKind } from "./roles.ts";

/** An authenticated caller. */
export interface Principal {
  /** Stable and unique; the audit log's actor. Never a secret. */
  readonly id: string;
  /** What it is: its first role. */
  readonly kind: PrincipalKind;
  /** What it may be. One role or more. */
  readonly roles: readonly Role[];
  /** For people; not unique. */
  readonly name: string;
  /**
   * When the credential that showed it expires, in milliseconds since the epoch: what was let in with it ends then.
   * Undefined for one without an end.
   */
  readonly expireMs?: number;
}

/**
 * Finds out who calls, by the Authorization header and by the certificate that the connection showed, if any. A server
 * asks only where that certificate has no problem of its own. Undefined: an unknown caller, which learns no more
 * than that. A fault that it throws is what the caller gets, such as IDENTITY_REFUSED or TOKEN_REFUSED; anything else
 * becomes an internal error.
 */
export type Authenticate = (
  authorization: string | undefined,
  peer?: Peer,
) => Principal | undefined | Promise<Principal | undefined>;

/**
 * The principal, where it has one of the roles.
 * Throws UNAUTHENTICATED where there is no principal and ROLE_REQUIRED, with the roles that would do, where it has none.
 */
export function requireRole(principal: Principal | undefined, roles: readonly Role[]): Principal {
  if (principal === undefined) {
    throw fault(ErrorReason.UNAUTHENTICATED, {}, { message: "a valid bearer token or certificate is needed" });
  }
  for (const role of roles) {
    if (principal.roles.includes(role)) return principal;
  }
  const names = roles.map((role) => roleName(role) ?? `role ${role}`).join(", ");
  const message = names === "" ? "no role may do this" : `one of these roles is needed: ${names}`;
  throw fault(ErrorReason.ROLE_REQUIRED, { roles: names }, { message });
}
