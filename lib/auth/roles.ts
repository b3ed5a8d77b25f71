import { Role } from "../../gen/ts/reeve/common/v1/access_pb.ts";

/** What kind of principal asks: its first role, in words. */
export type PrincipalKind = "operator" | "agent" | "auditor" | "service";

const NAMES: Readonly<Record<PrincipalKind, Role>> = {
  operator: Role.OPERATOR,
  agent: Role.AGENT,
  auditor: Role.AUDITOR,
  service: Role.SERVICE,
};

/** Every role's name, in the order of the enum. */
export const roleNames: readonly PrincipalKind[] = Object.freeze(Object.keys(NAMES) as PrincipalKind[]);

/** The name of a role, such as "operator"; undefined for a role that names nobody or is newer than this program. */
export function roleName(role: Role): PrincipalKind | undefined {
  return roleNames.find((name) => NAMES[name] === role);
}

/** The role of a name; undefined for a name that is none. */
export function roleFromName(name: string): Role | undefined {
  return Object.hasOwn(NAMES, name) ? NAMES[name as PrincipalKind] : undefined;
}
