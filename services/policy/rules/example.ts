import {
  create,
  type DescField,
  type DescMessage,
  type JsonObject,
  type JsonValue,
  type Message,
  ScalarType,
} from "@bufbuild/protobuf";
import { DurationSchema, TimestampSchema, timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type DecisionRequest, DecisionRequestSchema } from "../../../gen/ts/reeve/policy/v1/decision_pb.ts";
import type { ToolSpec } from "../../../lib/tool/spec.ts";
import type { ToolLookup } from "../facts/decision-request.ts";
import { ARGUMENTS, factFields, factName, valueNames } from "../facts/facts.ts";

/** An example's request, or why it is invalid. */
export type ExampleResult = { ok: true; request: DecisionRequest; args: JsonObject } | { ok: false; message: string };

const DEFAULT_TIME = "2026-01-01T12:00:00Z";

/** The request of an example that states nothing but its tool: an agent, by RPC, on a device in user mode. */
const DEFAULTS: Readonly<Record<string, JsonValue>> = {
  principal: { id: "example", roles: ["agent"] },
  device: { id: "dev-0000000000000000", name: "example", mode: "user", sandbox: "none", roots: ["/srv"] },
  ingress: "rpc",
  time: DEFAULT_TIME,
};

/**
 * Completes an example from a policy file to a request: the facts of its tool from the catalog, and DEFAULTS for whatever
 * it leaves out. A tool that is not built in ("service:tool") must be written as a mapping with a name.
 */
export function completeExample(example: JsonValue, lookup: ToolLookup): ExampleResult {
  try {
    const stated = fields(example, "an example");
    const tool = toolOf(stated.tool, lookup);
    const args = argumentsOf(stated[ARGUMENTS.fact] ?? {}, lookup(tool.name));
    const { [ARGUMENTS.fact]: _, ...facts } = withDefaults(stated);
    return { ok: true, request: messageOf(DecisionRequestSchema, { ...facts, tool }, "") as DecisionRequest, args };
  } catch (e: unknown) {
    if (e instanceof ExampleError) return { ok: false, message: e.message };
    throw e;
  }
}

class ExampleError extends Error {
  override readonly name = "ExampleError";
}

function withDefaults(stated: JsonObject): JsonObject {
  const completed: JsonObject = { ...DEFAULTS, ...stated };
  for (const [name, byDefault] of Object.entries(DEFAULTS)) {
    if (typeof byDefault === "object")
      completed[name] = { ...(byDefault as JsonObject), ...fields(stated[name] ?? {}, name) };
  }
  return completed;
}

function toolOf(stated: JsonValue | undefined, lookup: ToolLookup): JsonObject & { name: string } {
  if (stated === undefined) throw new ExampleError("an example must name its tool");
  const tool = typeof stated === "string" ? { name: stated } : fields(stated, "tool");
  const { name } = tool;
  if (typeof name !== "string") throw new ExampleError("tool.name must be a text");
  const known = lookup(name);
  if (!known && typeof stated === "string") throw new ExampleError(`no built-in tool is named "${name}"`);
  return { capabilities: [name], ...(known && builtInFacts(known)), ...tool, name };
}

function builtInFacts({ capabilities, annotations }: ToolSpec): JsonObject {
  const { readOnly, destructive, idempotent, openWorld } = annotations;
  return { capabilities, read_only: readOnly, destructive, idempotent, open_world: openWorld };
}

// A misspelt argument would make a no_match example true for the wrong reason.
function argumentsOf(stated: JsonValue, tool: ToolSpec | undefined): JsonObject {
  const object = fields(stated, ARGUMENTS.fact);
  const known = Object.keys(tool?.inputSchema.properties ?? {});
  const unknown = tool && Object.keys(object).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new ExampleError(`${tool?.name} has no argument "${unknown}"`);
  return object;
}

function messageOf(desc: DescMessage, stated: JsonObject, path: string): Message {
  const facts = factFields(desc);
  const unknown = Object.keys(stated).find((key) => !facts.some((field) => factName(field) === key));
  if (unknown !== undefined) {
    const known = facts.map(factName).join(", ");
    throw new ExampleError(`${path || "an example"}: unknown key "${unknown}"; known are ${known}`);
  }
  const init: Record<string, unknown> = {};
  for (const field of facts) {
    const value = stated[field.name];
    if (value !== undefined) init[field.localName] = fieldOf(field, value, path ? `${path}.${field.name}` : field.name);
  }
  return create(desc, init);
}

function fieldOf(field: DescField, value: JsonValue, path: string): unknown {
  switch (field.fieldKind) {
    case "list":
      if (!Array.isArray(value)) throw new ExampleError(`${path} must be a list`);
      return value.map((item) => singleValue(field, item, path));
    case "map":
      return Object.fromEntries(
        Object.entries(fields(value, path)).map(([key, inner]) => [key, singleValue(field, inner, `${path}.${key}`)]),
      );
    default:
      return singleValue(field, value, path);
  }
}

function singleValue(field: DescField, value: JsonValue, path: string): unknown {
  if (field.enum) {
    const names = valueNames(field.enum);
    const at = names.indexOf(textOf(value));
    if (at < 0) throw new ExampleError(`${path} must be one of ${names.join(", ")}`);
    return field.enum.values.filter(({ number }) => number !== 0)[at]?.number;
  }
  if (field.message?.typeName === TimestampSchema.typeName) return timeOf(value, path);
  if (field.message?.typeName === DurationSchema.typeName) return durationOf(value, path);
  if (field.message) return messageOf(field.message, fields(value, path), path);
  return scalarOf(field, value, path);
}

function scalarOf({ scalar }: DescField, value: JsonValue, path: string): unknown {
  const [type, name] =
    scalar === ScalarType.STRING
      ? ["string", "a text"]
      : scalar === ScalarType.BOOL
        ? ["boolean", "true or false"]
        : ["number", "a number"];
  if (typeof value !== type) throw new ExampleError(`${path} must be ${name}`);
  return value;
}

function timeOf(value: JsonValue, path: string): Message {
  const ms = Date.parse(textOf(value));
  if (Number.isNaN(ms)) throw new ExampleError(`${path} must be a time such as "${DEFAULT_TIME}"`);
  return timestampFromMs(ms);
}

function durationOf(value: JsonValue, path: string): Message {
  const seconds = /^(\d{1,9})s$/.exec(textOf(value))?.[1];
  if (seconds === undefined) throw new ExampleError(`${path} must be a duration such as "60s"`);
  return create(DurationSchema, { seconds: BigInt(seconds) });
}

function fields(stated: JsonValue, what: string): JsonObject {
  if (typeof stated === "object" && stated !== null && !Array.isArray(stated)) return stated;
  throw new ExampleError(`${what} must be a mapping`);
}

function textOf(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}
