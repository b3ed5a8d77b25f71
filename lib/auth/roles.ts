import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";

/** What kind of principal asks: its first role, in words. */
export type PrincipalKind = "operator" | "agent" | "auditor" | "service" | "device" | "workflow" | "trigger";

const NAMES: Readonly<Record<PrincipalKind, Role>> = {
  operator: Role.OPERATOR,
  agent: Role.AGENT,
  auditor: Role.AUDITOR,
  service: Role.SERVICE,
  device: Role.DEVICE,
  workflow: Role.WORKFLOW,
  trigger: Role.TRIGGER,
};

const kinds: readonly PrincipalKind[] = Object.freeze(Object.keys(NAMES) as PrincipalKind[]);

/**
 * The name of every role that a token, a claim or a rule may name, in the order of the enum. Device is none of them: only
 * a device's certificate makes a principal a device.
 */
export const roleNames: readonly PrincipalKind[] = Object.freeze(kinds.filter((kind) => kind !== "device"));

/** The name of a role, such as "operator"; undefined for a role that is unspecified or is newer than this program. */
export function roleName(role: Role): PrincipalKind | undefined {
  return kinds.find((name) => NAMES[name] === role);
}

/** The role of one of `roleNames`; undefined for any other name. */
export function roleFromName(name: string): Role | undefined {
  const known = roleNames.find((kind) => kind === name);
  return known === undefined ? undefined : NAMES[known];
}
