import type { JWTPayload } from "jose";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { fault } from "../fault/fault.ts";
import type { Principal } from "./principal.ts";
import { roleFromName, roleName } from "./roles.ts";

/** How claims become roles. */
export interface RoleMapping {
  /** The claim that lists what a person belongs to, such as "groups"; dots lead into objects: "realm_access.roles". */
  claim: string;
  /** By a value of the claim: the role that it gives. */
  roles: ReadonlyMap<string, Role>;
}

/** Roles that a person's provider can give. The others belong to programs of the control plane and to devices. */
const GIVEN_BY_CLAIMS = new Set(["operator", "agent", "auditor"]);

/**
 * The mapping of a setting such as "reeve-admins=operator,everyone=auditor". Throws a TypeError that says which entry is
 * wrong, and for a setting that maps nothing.
 */
export function parseRoleMapping(claim: string, text: string): RoleMapping {
  const roles = new Map<string, Role>();
  for (const entry of text.split(",").map((part) => part.trim())) {
    if (entry === "") continue;
    const at = entry.lastIndexOf("=");
    const [value, name] = [entry.slice(0, at).trim(), entry.slice(at + 1).trim()];
    const role = GIVEN_BY_CLAIMS.has(name) ? roleFromName(name) : undefined;
    if (at < 1 || value === "" || role === undefined) {
      const names = [...GIVEN_BY_CLAIMS].join(", ");
      throw new TypeError(`"${entry}" is not value=role, such as reeve-admins=operator; roles are ${names}`);
    }
    roles.set(value, role);
  }
  if (roles.size === 0) throw new TypeError("no value of the claim is given a role, so no caller could do anything");
  return { claim, roles };
}

/**
 * The principal of verified claims. Its id is "oidc/" and the subject, which never changes at its issuer. Throws
 * TOKEN_REFUSED (claims) for claims without a subject or without any value that has a role.
 */
export function principalFromClaims(claims: JWTPayload, mapping: RoleMapping): Principal {
  const { sub } = claims;
  if (sub === undefined || sub === "") throw refused("the token names no subject: it has no claim sub");
  const values = valuesOf(claims, mapping.claim);
  const roles = [...new Set(values.flatMap((value) => mapping.roles.get(value) ?? []))];
  const kind = roles[0] === undefined ? undefined : roleName(roles[0]);
  if (kind === undefined) {
    const known = [...mapping.roles.keys()].join(", ");
    throw refused(`no value of the claim ${mapping.claim} has a role here; these have one: ${known}`);
  }
  return Object.freeze({ id: `oidc/${sub}`, kind, roles: Object.freeze(roles), name: nameOf(claims) ?? sub });
}

function valuesOf(claims: JWTPayload, path: string): string[] {
  let found: unknown = Object.hasOwn(claims, path) ? claims[path] : undefined;
  if (found === undefined) {
    found = claims;
    for (const key of path.split(".")) {
      found =
        typeof found === "object" && found !== null && Object.hasOwn(found, key) ? Reflect.get(found, key) : undefined;
    }
  }
  // Some providers send a single value bare.
  const list: readonly unknown[] = Array.isArray(found) ? found : [found];
  return list.filter((value) => typeof value === "string");
}

function nameOf(claims: JWTPayload): string | undefined {
  for (const claim of ["preferred_username", "email", "name"]) {
    const value = claims[claim];
    if (typeof value === "string" && value !== "") return value;
  }
  return undefined;
}

function refused(message: string): Error {
  return fault(ErrorReason.TOKEN_REFUSED, { why: "claims" }, { message });
}
