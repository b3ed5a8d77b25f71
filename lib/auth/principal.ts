import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { fault } from "../fault/fault.ts";
import type { Peer } from "./peer.ts";
import { type PrincipalKind, roleName } from "./roles.ts";

export type { PrincipalKind } from "./roles.ts";

/** The most of a tool's name that an error shows, in characters. */
const MAX_NAME = 128;

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
  /** The tools that its token allows, by name. Undefined: all that its roles and policy allow. */
  readonly tools?: readonly string[];
}

/** Whether a principal's token allows a tool. It is no permission: policy decides about each call. */
export function allowsTool({ tools }: Pick<Principal, "tools">, name: string): boolean {
  return tools === undefined || tools.includes(name);
}

/** Throws TOOL_NOT_ALLOWED, with what the principal's token allows, for any other tool. */
export function requireTool(principal: Principal, name: string): void {
  if (allowsTool(principal, name)) return;
  const allowed = (principal.tools ?? []).join(", ");
  const tool = name.slice(0, MAX_NAME);
  const message = `the token of ${principal.name} allows these tools: ${allowed}; ${tool} is not among them`;
  throw fault(ErrorReason.TOOL_NOT_ALLOWED, { tool, allowed }, { message });
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
