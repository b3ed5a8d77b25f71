import type { JsonObject } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { Mode, SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import {
  type DecisionRequest,
  type DeviceFacts,
  type PrincipalFacts,
  type ToolFacts as RequestTool,
  Source,
} from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { roleName } from "../../../lib/auth/roles.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { Facts, ToolFacts } from "../rules/facts.ts";

/** A request whose required parts are all there. */
export interface WholeRequest {
  request: DecisionRequest;
  principal: PrincipalFacts;
  device: DeviceFacts;
  tool: RequestTool;
  /** When it was asked, in milliseconds since 1970. */
  timeMs: number;
}

/** Checks that the required parts are there. Throws INVALID_INPUT with the first that is not. */
export function wholeRequest(request: DecisionRequest): WholeRequest {
  const { principal, device, tool, time } = request;
  if (request.callId === "") throw missing("callId");
  if (!principal?.id) throw missing("principal.id");
  if (!device?.id) throw missing("device.id");
  if (!device.manifestDigest) throw missing("device.manifestDigest");
  if (!tool?.name) throw missing("tool.name");
  if (!tool.schemaDigest) throw missing("tool.schemaDigest");
  if (!time) throw missing("time");
  checkDevices(request);
  return { request, principal, device, tool, timeMs: timestampMs(time) };
}

/** The devices of a fan-out: named whole, each once, the first of them being `device`. */
function checkDevices({ device, devices }: DecisionRequest): void {
  const seen = new Set<string>();
  for (const [index, { id, manifestDigest }] of devices.entries()) {
    if (id === "") throw missing(`devices[${index}].id`);
    if (manifestDigest === "") throw missing(`devices[${index}].manifestDigest`);
    if (seen.has(id)) throw wrong(`devices[${index}].id`, "unique", "is there twice");
    seen.add(id);
  }
  if (devices[0] !== undefined && devices[0].id !== device?.id)
    throw wrong("device.id", "first", "is not devices[0].id");
}

/** What rules look at. */
export function factsOf({ request, principal, device, tool, timeMs }: WholeRequest, args: JsonObject): Facts {
  return {
    principal: { id: principal.id, roles: principal.roles.map((role) => roleName(role) ?? "unknown") },
    device: {
      id: device.id,
      name: device.name,
      labels: device.labels,
      mode: MODES[device.mode] ?? "user",
      sandbox: SANDBOXES[device.sandbox] ?? "none",
      roots: device.roots,
    },
    tool: toolFacts(tool),
    args,
    source: sourceName(request.source),
    timeMs,
  };
}

const MODES: Readonly<Record<number, string>> = { [Mode.USER]: "user", [Mode.SUDO]: "sudo", [Mode.ALL]: "all" };

const SANDBOXES: Readonly<Record<number, string>> = {
  [SandboxLevel.PROCESS]: "process",
  [SandboxLevel.FULL]: "full",
};

const SOURCES: Readonly<Record<number, string>> = {
  [Source.RPC]: "rpc",
  [Source.STREAM]: "stream",
  [Source.HTTP]: "http",
  [Source.CLI]: "cli",
  [Source.LLM]: "llm",
};

/** The name of a source in rules and records; "unknown" where it is not stated. */
export function sourceName(source: Source): string {
  return SOURCES[source] ?? "unknown";
}

function toolFacts(tool: RequestTool): ToolFacts {
  return {
    name: tool.name,
    capability: tool.capability,
    read_only: tool.readOnly,
    destructive: tool.destructive,
    idempotent: tool.idempotent,
    open_world: tool.openWorld,
    requires_approval: tool.requiresApproval,
  };
}

function missing(field: string): Error {
  return wrong(field, "required", "is required");
}

function wrong(field: string, rule: string, what: string): Error {
  return fault(ErrorReason.INVALID_INPUT, { field, rule }, { message: `${field} ${what}` });
}
