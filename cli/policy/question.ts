import { create, type JsonObject } from "@bufbuild/protobuf";
import { durationFromMs, durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Ingress } from "../../gen/ts/reeve/common/v1/ingress_pb.ts";
import type { Device } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { type DecisionRequest, DecisionRequestSchema } from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { Tool } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { fault } from "../../lib/fault/fault.ts";
import { canonicalJson } from "../../lib/sign/canonical.ts";
import { canonicalArguments } from "../../lib/tool/arguments.ts";
import { builtInTools } from "../../lib/toolschema/built-in-tools.ts";

/** What a question about a call is made from. */
export interface QuestionFacts {
  device: Device;
  tool: Tool;
  params: JsonObject;
  /** Who would ask. */
  principalId: string;
  role: Role;
  purpose: string;
  /** Milliseconds since 1970. */
  now: number;
}

/** How the registry sees a principal of these roles; any other comes in through the command line. */
const OBSERVED: ReadonlyMap<Role, Ingress> = new Map([
  [Role.AGENT, Ingress.LLM],
  [Role.WORKFLOW, Ingress.WORKFLOW],
]);

/** The question that the registry would ask policy about such a call. Throws INVALID_INPUT for params that break the schema. */
export function questionAbout({
  device,
  tool,
  params,
  principalId,
  role,
  purpose,
  now,
}: QuestionFacts): DecisionRequest {
  const args = argumentsOf(tool, params);
  const defaultTimeoutMs = tool.defaultTimeout === undefined ? 0 : durationMs(tool.defaultTimeout);
  return create(DecisionRequestSchema, {
    callId: `explain-${now}`,
    principal: { id: principalId, roles: [role] },
    device: {
      id: device.id,
      name: device.name,
      labels: device.labels,
      mode: device.mode,
      manifestDigest: device.manifestDigest,
      sandbox: device.sandbox,
    },
    tool: {
      name: tool.name,
      capabilities: tool.capabilities,
      readOnly: tool.annotations?.readOnly ?? false,
      destructive: tool.annotations?.destructive ?? false,
      idempotent: tool.annotations?.idempotent ?? false,
      openWorld: tool.annotations?.openWorld ?? false,
      requiresApproval: tool.requiresApproval,
      schemaDigest: tool.schemaDigest,
    },
    arguments: args.bytes,
    ingress: OBSERVED.get(role) ?? Ingress.CLI,
    time: timestampFromMs(now),
    timeout: durationFromMs(args.timeoutMs === 0 ? defaultTimeoutMs : args.timeoutMs),
    purpose,
  });
}

/** The device that a caller means by a name, out of all. */
export function presentDevice(device: Device | undefined, name: string): Device {
  if (device !== undefined) return device;
  throw fault(ErrorReason.UNKNOWN_DEVICE, { device: name }, { message: `no device ${JSON.stringify(name)}` });
}

/** A built-in tool's arguments in their one canonical form; another tool's as they were given. */
function argumentsOf(tool: Tool, params: JsonObject): { bytes: Uint8Array; timeoutMs: number } {
  const builtIn = builtInTools().get(tool.name);
  if (builtIn !== undefined && builtIn.spec.schemaDigest === tool.schemaDigest)
    return canonicalArguments(builtIn, params);
  return { bytes: new TextEncoder().encode(canonicalJson(params)), timeoutMs: 0 };
}
