import type { JsonObject } from "@bufbuild/protobuf";
import { durationMs, timestampMs } from "@bufbuild/protobuf/wkt";
import type {
  DecisionRequest,
  DeviceFacts,
  PrincipalFacts,
  ToolFacts,
} from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { analyzeCall, type CallAnalysis, withoutPlan } from "../../../lib/command/call.ts";
import { invalidField, invalidInput, missingField } from "../../../lib/fault/invalid-input.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { readCanonicalArguments } from "../../../lib/tool/canonical-arguments.ts";
import type { JsonSchema } from "../../../lib/tool/json-schema.ts";
import { type PreviewFact, readPreview } from "../../../lib/tool/preview.ts";
import type { ToolSpec } from "../../../lib/tool/spec.ts";

/** A request with its required parts, and with its arguments parsed. */
export interface ValidatedRequest {
  request: DecisionRequest;
  principal: PrincipalFacts;
  device: DeviceFacts;
  tool: ToolFacts;
  /** When it was asked, in milliseconds since 1970. */
  timeMs: number;
  /** The longest it may run, in milliseconds; 0 for the tool's own limit. */
  timeoutMs: number;
  args: JsonObject;
  /** SHA-256 of the canonical arguments, in hex. */
  argsDigest: string;
  /** The schema of the tool's input, where it is known: it says which arguments are secrets. */
  inputSchema: JsonSchema | undefined;
  /** What the commands in its arguments come to on its device. */
  command: CallAnalysis;
  /** The device can say what the arguments stand for. */
  hasPreview: boolean;
  /** What it said. Undefined where it was not asked, or said nothing. */
  preview: ShownPreview | undefined;
}

/** A preview of a call, as its approver is shown it. */
export interface ShownPreview {
  facts: PreviewFact[];
  /** SHA-256 of the device's output, in hex. */
  digest: string;
}

/** Finds a built-in tool by its name. */
export type ToolLookup = (name: string) => ToolSpec | undefined;

/** The largest schema that a request may bring, in bytes. */
const MAX_SCHEMA_BYTES = 64 * 1024;

/**
 * Checks the required parts and parses the arguments. The rules of the message are checked again here, since a caller in
 * the same process goes through no interceptor. Throws INVALID_INPUT with the first field that is wrong.
 */
export function validateRequest(request: DecisionRequest, lookup: ToolLookup): ValidatedRequest {
  const { principal, device, tool, time } = request;
  if (request.callId === "") throw missingField("callId");
  if (!principal?.id) throw missingField("principal.id");
  if (!device?.id) throw missingField("device.id");
  if (!device.manifestDigest) throw missingField("device.manifestDigest");
  if (!tool?.name) throw missingField("tool.name");
  if (tool.capabilities.length === 0 || tool.capabilities.includes("")) throw missingField("tool.capabilities");
  if (!tool.schemaDigest) throw missingField("tool.schemaDigest");
  if (!time) throw missingField("time");
  checkDevices(request);
  const args = argumentsOf(request);
  const inputSchema = inputSchemaOf(tool, lookup);
  return {
    ...{ request, principal, device, tool, timeMs: timestampMs(time) },
    timeoutMs: request.timeout ? durationMs(request.timeout) : 0,
    ...{ args, argsDigest: sha256Hex(request.arguments), inputSchema },
    command: commandOn(device, { tool, args, inputSchema }, lookup),
    hasPreview: hasPreview(tool, lookup),
    preview: previewOf(request),
  };
}

/** What the commands in a call's arguments come to on one device. Pure. */
export function commandOn(
  { roots, platform }: Pick<DeviceFacts, "roots" | "platform">,
  { tool, args, inputSchema }: Pick<ValidatedRequest, "tool" | "args" | "inputSchema">,
  lookup: ToolLookup,
): CallAnalysis {
  if (inputSchema !== undefined) return analyzeCall(inputSchema, args, { roots, platform });
  // A built-in tool's own schema is the closest there is: its commands are not let pass, but what they do is not known either.
  const found = analyzeCall(lookup(tool.name)?.inputSchema ?? {}, args, { roots, platform });
  return withoutPlan(found, "command/unknown-schema", "stands in arguments whose schema is not known");
}

/** True for a request about a whole fan-out, whose permit carries no grant. */
export function isFanOut({ devices }: Pick<DecisionRequest, "devices">): boolean {
  return devices.length > 0;
}

/** The devices of a fan-out: each complete and named once, the first of them being `device`. */
function checkDevices({ device, devices }: DecisionRequest): void {
  const seen = new Set<string>();
  for (const [index, { id, manifestDigest }] of devices.entries()) {
    if (id === "") throw missingField(`devices[${index}].id`);
    if (manifestDigest === "") throw missingField(`devices[${index}].manifestDigest`);
    if (seen.has(id)) throw invalidField(`devices[${index}].id`, "unique", "is named twice");
    seen.add(id);
  }
  if (devices[0] !== undefined && devices[0].id !== device?.id)
    throw invalidField("device.id", "first", "is not devices[0].id");
}

/** Only of built-in tools of this very version is it known that they have one. */
function hasPreview({ name, schemaDigest }: ToolFacts, lookup: ToolLookup): boolean {
  const builtIn = lookup(name);
  return builtIn?.hasPreview === true && builtIn.schemaDigest === schemaDigest;
}

function previewOf({ preview }: DecisionRequest): ShownPreview | undefined {
  if (preview === undefined || preview.facts.length === 0) return undefined;
  const facts = readPreview(preview.facts);
  if (facts === undefined) throw invalidField("preview.facts", "preview", "is no preview of a device");
  return { facts, digest: sha256Hex(preview.facts) };
}

function argumentsOf(request: DecisionRequest): JsonObject {
  const read = readCanonicalArguments(request.arguments);
  if (read.ok) return read.value;
  throw invalidInput([read]);
}

/**
 * The schema of a tool's input: what the request brings, or that of the built-in tool of this very version. Undefined where
 * neither is known, so that it is not known which arguments are secrets. Throws INVALID_INPUT for a schema whose digest is another.
 */
export function inputSchemaOf(
  tool: Pick<ToolFacts, "name" | "schemaDigest" | "inputSchema">,
  lookup: ToolLookup,
): JsonSchema | undefined {
  if (tool.inputSchema.length > 0) return requestSchema(tool);
  const builtIn = lookup(tool.name);
  return builtIn?.schemaDigest === tool.schemaDigest ? builtIn.inputSchema : undefined;
}

function requestSchema({ inputSchema, schemaDigest }: Pick<ToolFacts, "inputSchema" | "schemaDigest">): JsonSchema {
  if (inputSchema.length > MAX_SCHEMA_BYTES) throw wrongSchema("max_len", `is over ${MAX_SCHEMA_BYTES} bytes`);
  if (sha256Hex(inputSchema) !== schemaDigest)
    throw wrongSchema("digest", "is not what tool.schemaDigest is the digest of");
  const schema = parsed(inputSchema);
  if (typeof schema === "object" && schema !== null && !Array.isArray(schema)) return schema as JsonSchema;
  throw wrongSchema("schema", "is no JSON Schema");
}

function parsed(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(Buffer.from(bytes).toString("utf8"));
  } catch {
    return undefined;
  }
}

function wrongSchema(rule: string, what: string): Error {
  return invalidField("tool.inputSchema", rule, what);
}
