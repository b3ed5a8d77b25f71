import { posix } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { isNotBlank, isProgramName } from "../programs/run-input.ts";
import { schemaAt } from "../tool/json-schema.ts";
import { isToolName } from "../toolschema/names.ts";
import { type EnvPart, isReeveVariable, isVariableName, parseEnvTemplate, variablesIn } from "./env-template.ts";
import type { JsonPlace, JsonReader } from "./json-reader.ts";

/**
 * How far a tool's program is kept apart. "read_only" and "workspace" are levels of the sandbox; "host" is no sandbox at all: it can do
 * what the agent's user can.
 */
export const PERMISSION_CLASSES = ["read_only", "workspace", "host"] as const;

export type PermissionClass = (typeof PERMISSION_CLASSES)[number];

/** A tool as a plugin.json declares it. */
export interface ToolDeclaration {
  /** Without the plugin's name. */
  name: string;
  description: string;
  inputSchema: JsonObject;
  /** What is run. */
  command: Command;
  args: readonly string[];
  /** Variables besides those that every program gets, in the order of the file. */
  env: readonly (readonly [name: string, parts: readonly EnvPart[]])[];
  /** Where it runs: relative to the plugin's folder, "." for that itself, or absolute. */
  workDir: string;
  timeoutSeconds: number;
  permissionClass: PermissionClass;
  /** Whether several calls of it may run at a time. */
  concurrencySafe: boolean;
  readOnly: boolean;
  destructive: boolean;
  /** Where it stands in the file, from 1. */
  line: number;
  /** Where those of its parts stand that are checked later. */
  lines: { command: number; workDir: number; inputSchema: number };
}

/** A program: by a name on the PATH, by its absolute path, or by its path in the plugin's folder. */
export interface Command {
  kind: "name" | "absolute" | "own";
  path: string;
}

const KEYS = [
  ...["name", "description", "input_schema", "command", "args", "env", "work_dir", "timeout_seconds"],
  ...["permission_class", "concurrency_safe", "read_only", "destructive"],
];

/** How long a tool may run where its declaration does not say, in seconds. */
const DEFAULT_TIMEOUT_S = 30;
const MAX_TIMEOUT_S = 3600;
const MAX_DESCRIPTION = 4096;

/** The input of a tool that declares none: what is not declared is refused, not passed on. */
const NO_INPUT: JsonObject = { type: "object", properties: {}, additionalProperties: false };

/** Reads one tool. `allowed` are the variables of the agent's environment that the plugin may refer to. */
export function readTool(reader: JsonReader, place: JsonPlace, allowed: ReadonlySet<string>): ToolDeclaration {
  const field = reader.fields(place, "a tool", KEYS);
  const readOnly = reader.flag(field("read_only"), "read_only");
  const destructive = reader.flag(field("destructive"), "destructive");
  if (readOnly && destructive)
    reader.report(field("destructive"), "a tool that only reads cannot be destructive: take one of the two out");
  return {
    name: toolName(reader, field("name")),
    description: description(reader, field("description")),
    inputSchema: inputSchema(reader, field("input_schema")),
    command: command(reader, field("command")),
    args: reader.items(field("args"), "args").map((item) => reader.text(item, "args") ?? ""),
    env: reader.members(field("env"), "env").map(([name, value]) => variable(reader, name, value, allowed)),
    workDir: workDir(reader, field("work_dir")),
    timeoutSeconds:
      reader.integer(field("timeout_seconds"), "timeout_seconds", { min: 1, max: MAX_TIMEOUT_S }) ?? DEFAULT_TIMEOUT_S,
    permissionClass: permissionClass(reader, field("permission_class"), readOnly),
    concurrencySafe: reader.flag(field("concurrency_safe"), "concurrency_safe"),
    readOnly,
    destructive,
    line: reader.lineOf(place),
    lines: {
      command: reader.lineOf(field("command")),
      workDir: reader.lineOf(field("work_dir")),
      inputSchema: reader.lineOf(field("input_schema")),
    },
  };
}

function toolName(reader: JsonReader, place: JsonPlace): string {
  const name = reader.text(place, "name") ?? "";
  if (!isToolName(name))
    reader.report(place, `a tool's name must be of a-z, 0-9, _ and dots between words, at most 64, not "${name}"`);
  return name;
}

function description(reader: JsonReader, place: JsonPlace): string {
  const text = reader.text(place, "description") ?? "";
  if (!isNotBlank(text) || text.length > MAX_DESCRIPTION)
    reader.report(place, `description must say what the tool does, in at most ${MAX_DESCRIPTION} characters`);
  return text;
}

function inputSchema(reader: JsonReader, place: JsonPlace): JsonObject {
  if (place.value === undefined) return NO_INPUT;
  const schema = schemaAt(place.value);
  if (schema === undefined) reader.report(place, "input_schema must be a JSON Schema, as an object");
  return schema ?? NO_INPUT;
}

function command(reader: JsonReader, place: JsonPlace): Command {
  const path = reader.text(place, "command") ?? "";
  if (path.startsWith("/")) return { kind: "absolute", path };
  if (isProgramName(path)) return { kind: "name", path };
  const own = posix.normalize(path);
  if (!isNotBlank(path) || !isWithin(own) || own === "." || own.endsWith("/"))
    reader.report(place, "command must be a name on the PATH, an absolute path, or a file in the plugin's folder");
  return { kind: "own", path: own };
}

function workDir(reader: JsonReader, place: JsonPlace): string {
  const path = posix.normalize(reader.text(place, "work_dir") ?? ".");
  if (path.startsWith("/")) return path;
  if (!isWithin(path)) reader.report(place, "work_dir must lie in the plugin's folder, or be an absolute path");
  return path === "./" ? "." : path.replace(/\/$/, "");
}

/** Whether a normal relative path stays where it begins. */
function isWithin(path: string): boolean {
  return path !== ".." && !path.startsWith("../");
}

function variable(
  reader: JsonReader,
  name: string,
  place: JsonPlace,
  allowed: ReadonlySet<string>,
): readonly [string, EnvPart[]] {
  if (!isVariableName(name) || isReeveVariable(name))
    reader.report(place, `env: "${name}" is no name of a variable that a plugin may set`);
  try {
    const parts = parseEnvTemplate(reader.text(place, `env.${name}`) ?? "");
    for (const used of variablesIn(parts))
      if (!allowed.has(used)) reader.report(place, `env.${name}: "\${${used}}" is not in the plugin's env_allow`);
    return [name, parts];
  } catch (error: unknown) {
    reader.report(place, `env.${name}: ${error instanceof Error ? error.message : String(error)}`);
    return [name, []];
  }
}

function permissionClass(reader: JsonReader, place: JsonPlace, readOnly: boolean): PermissionClass {
  const name = reader.text(place, "permission_class") ?? (readOnly ? "read_only" : "workspace");
  const known = PERMISSION_CLASSES.find((one) => one === name);
  if (known === undefined) reader.report(place, `permission_class must be one of ${PERMISSION_CLASSES.join(", ")}`);
  return known ?? "read_only";
}
