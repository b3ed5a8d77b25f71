import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { roleFromName, roleNames } from "../../../lib/auth/roles.ts";
import type { ToolSpec } from "../../../lib/tool/spec.ts";
import type { Facts, ToolFacts } from "./facts.ts";

/** Finds a built-in tool by its name. */
export type ToolLookup = (name: string) => ToolSpec | undefined;

/** An example's facts, or why they are none. */
export type ExampleResult = { ok: true; facts: Facts } | { ok: false; message: string };

const SOURCES = ["rpc", "stream", "http", "cli", "llm"];
const MODES = ["user", "sudo", "all"];
const SANDBOXES = ["none", "process", "full"];
const DEFAULT_ROOTS = ["/srv"];
const DEFAULT_TIME = "2026-01-01T12:00:00Z";

/**
 * Completes an example from a policy file to whole facts: the tool's facts from the catalog, an agent who asks by RPC,
 * and a device in user mode that grants /srv, where the example says nothing else. A tool that is not built in ("service:tool") must be
 * written as a mapping with a name.
 */
export function completeExample(example: JsonValue, lookup: ToolLookup): ExampleResult {
  try {
    return { ok: true, facts: completed(example, lookup) };
  } catch (e: unknown) {
    if (e instanceof ExampleError) return { ok: false, message: e.message };
    throw e;
  }
}

class ExampleError extends Error {
  override readonly name = "ExampleError";
}

function completed(example: JsonValue, lookup: ToolLookup): Facts {
  const given = fields(example, "an example", ["tool", "args", "principal", "device", "source", "time"]);
  const tool = toolFacts(given.tool, lookup);
  const principal = fields(given.principal ?? {}, "principal", ["id", "roles"]);
  const device = fields(given.device ?? {}, "device", ["id", "name", "labels", "mode", "sandbox", "roots"]);
  return {
    tool,
    args: args(given.args ?? {}, lookup(tool.name)),
    principal: { id: text(principal.id, "principal.id", "example"), roles: roles(principal.roles ?? ["agent"]) },
    device: {
      id: text(device.id, "device.id", "dev-0000000000000000"),
      name: text(device.name, "device.name", "example"),
      labels: labels(device.labels ?? {}),
      mode: oneOf(device.mode, "device.mode", MODES, "user"),
      sandbox: oneOf(device.sandbox, "device.sandbox", SANDBOXES, "none"),
      roots: roots(device.roots ?? DEFAULT_ROOTS),
    },
    source: oneOf(given.source, "source", SOURCES, "rpc"),
    timeMs: time(text(given.time, "time", DEFAULT_TIME)),
  };
}

const FLAGS = ["read_only", "destructive", "idempotent", "open_world", "requires_approval"] as const;
const TOOL_KEYS = ["name", "capability", ...FLAGS];

function toolFacts(given: JsonValue | undefined, lookup: ToolLookup): ToolFacts {
  if (given === undefined) throw new ExampleError("an example must name its tool");
  const stated: JsonObject = typeof given === "string" ? { name: given } : fields(given, "tool", TOOL_KEYS);
  const name = text(stated.name, "tool.name", "");
  const known = lookup(name);
  if (!known && typeof given === "string") throw new ExampleError(`no built-in tool is named "${name}"`);
  const facts: ToolFacts = {
    name,
    capability: text(stated.capability, "tool.capability", known?.capability ?? name),
    read_only: known?.annotations.readOnly ?? false,
    destructive: known?.annotations.destructive ?? false,
    idempotent: known?.annotations.idempotent ?? false,
    open_world: known?.annotations.openWorld ?? false,
    requires_approval: false,
  };
  for (const flag of FLAGS) facts[flag] = bool(stated[flag], `tool.${flag}`, facts[flag]);
  return facts;
}

// A misspelt argument would make a no_match example true for the wrong reason.
function args(given: JsonValue, tool: ToolSpec | undefined): JsonObject {
  const object = fields(given, "args");
  const known = Object.keys(tool?.inputSchema.properties ?? {});
  const unknown = tool && Object.keys(object).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new ExampleError(`${tool?.name} has no argument "${unknown}"`);
  return object;
}

function roles(given: JsonValue): string[] {
  if (!Array.isArray(given)) throw new ExampleError("principal.roles must be a list");
  return given.map((role) => {
    if (typeof role === "string" && roleFromName(role) !== undefined) return role;
    throw new ExampleError(
      `principal.roles: no role is named ${JSON.stringify(role)}; there are ${roleNames.join(", ")}`,
    );
  });
}

function labels(given: JsonValue): Record<string, string> {
  const object = fields(given, "device.labels");
  return Object.fromEntries(
    Object.entries(object).map(([key, value]) => [key, text(value, `device.labels.${key}`, "")]),
  );
}

function roots(given: JsonValue): string[] {
  if (!Array.isArray(given)) throw new ExampleError("device.roots must be a list");
  return given.map((root) => text(root, "device.roots", ""));
}

function fields(given: JsonValue, what: string, keys?: readonly string[]): JsonObject {
  if (typeof given !== "object" || given === null || Array.isArray(given)) {
    throw new ExampleError(`${what} must be a mapping`);
  }
  const unknown = keys && Object.keys(given).find((key) => !keys.includes(key));
  if (unknown !== undefined) throw new ExampleError(`${what}: unknown key "${unknown}"; known are ${keys?.join(", ")}`);
  return given;
}

function text(given: JsonValue | undefined, what: string, byDefault: string): string {
  if (given === undefined) return byDefault;
  if (typeof given === "string") return given;
  throw new ExampleError(`${what} must be a text`);
}

function bool(given: JsonValue | undefined, what: string, byDefault: boolean): boolean {
  if (given === undefined) return byDefault;
  if (typeof given === "boolean") return given;
  throw new ExampleError(`${what} must be true or false`);
}

function oneOf(given: JsonValue | undefined, what: string, values: readonly string[], byDefault: string): string {
  const value = text(given, what, byDefault);
  if (values.includes(value)) return value;
  throw new ExampleError(`${what} must be one of ${values.join(", ")}`);
}

function time(value: string): number {
  const ms = Date.parse(value);
  if (Number.isNaN(ms)) throw new ExampleError(`time must be a time such as "${DEFAULT_TIME}"`);
  return ms;
}
