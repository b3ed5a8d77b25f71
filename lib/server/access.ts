import { type DescMethod, getOption, hasOption } from "@bufbuild/protobuf";
import { Health } from "../../gen/ts/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../../gen/ts/grpc/reflection/v1/reflection_pb.ts";
import { ServerReflection as ServerReflectionAlpha } from "../../gen/ts/grpc/reflection/v1alpha/reflection_pb.ts";
import { access, Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { tool } from "../../gen/ts/reeve/options/v1/tool_pb.ts";

/** Who may call an RPC: anyone, or a principal with one of the roles. No roles: no caller. */
export type Access = { readonly public: boolean; readonly roles: readonly Role[] };

/** Finds who may call an RPC. Undefined: no caller. */
export type AccessLookup = (method: DescMethod) => Access | undefined;

/** The services of the server itself, which cannot carry our option and return nothing that is secret. */
const PUBLIC = new Set([Health.typeName, ServerReflection.typeName, ServerReflectionAlpha.typeName]);
const ANYONE: Access = { public: true, roles: [] };
const NO_CALLER: Access = { public: false, roles: [] };
const CALLERS: Access = { public: false, roles: [Role.OPERATOR, Role.AGENT, Role.WORKFLOW] };

/**
 * What an RPC's own option (reeve.options.v1.access) says. An RPC that is a tool (reeve.options.v1.tool) says nothing there and
 * may be called by those who may call tools.
 */
export const accessFromOption: AccessLookup = (method) => {
  if (hasOption(method, access)) return getOption(method, access);
  return hasOption(method, tool) ? CALLERS : undefined;
};

/** Asks the lookup once for each RPC. Health and reflection are open to anyone, whatever it says. */
export function rememberAccess(lookup: AccessLookup): (method: DescMethod) => Access {
  const known = new Map<DescMethod, Access>();
  return (method) => {
    let found = known.get(method);
    if (found === undefined) {
      found = PUBLIC.has(method.parent.typeName) ? ANYONE : (lookup(method) ?? NO_CALLER);
      known.set(method, found);
    }
    return found;
  };
}
