import type { ContextValues } from "@connectrpc/connect";
import { Ingress } from "../../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Principal, PrincipalKind } from "../../../lib/auth/principal.ts";
import { localKey } from "../../../lib/server/context.ts";

/**
 * The faces of the registry: what a call can be seen to come in by. MCP is a model's, whatever token its client has: what
 * speaks it is a model's host.
 */
export type Face =
  | typeof Ingress.RPC
  | typeof Ingress.STREAM
  | typeof Ingress.HTTP
  | typeof Ingress.CLI
  | typeof Ingress.LLM;

/** The face of an RPC: the command line's where it came by the owner's socket, otherwise the one that is given. */
export function faceOf({ values }: { readonly values: ContextValues }, face: Face): Face {
  return values.get(localKey) ? Ingress.CLI : face;
}

/**
 * How a call came in, for rules and records: the face, LLM where an agent asks, or WORKFLOW where a rule or a scheduled job
 * does. It follows from what the registry sees for itself, because a rule that trusts what a caller says of itself restrains no caller.
 */
export function observedIngress(face: Face, principal: Principal): Ingress {
  if (isOf(principal, "agent", Role.AGENT)) return Ingress.LLM;
  return isOf(principal, "workflow", Role.WORKFLOW) ? Ingress.WORKFLOW : face;
}

/**
 * Whether a principal is a program of this kind. A token that is such a program's first, and one that gives an operator's
 * rights to it; a person's token that looks at everything and calls under an agent's rules is an auditor's first.
 */
function isOf({ kind, roles }: Principal, program: PrincipalKind, role: Role): boolean {
  return kind === program || (roles.includes(role) && roles.includes(Role.OPERATOR));
}
