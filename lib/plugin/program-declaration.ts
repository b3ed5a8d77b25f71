import { posix } from "node:path";
import { isNotBlank, isProgramName } from "../programs/run-input.ts";
import { type EnvPart, isReeveVariable, isVariableName } from "./env-template.ts";
import type { JsonPlace, JsonReader } from "./json-reader.ts";
import { readTemplate } from "./template-field.ts";

/**
 * How far a tool's program is kept apart. "read_only" and "workspace" are levels of the sandbox; "host" is no sandbox at all: it can do
 * what the agent's user can.
 */
export const PERMISSION_CLASSES = ["read_only", "workspace", "host"] as const;

export type PermissionClass = (typeof PERMISSION_CLASSES)[number];

/** A program that a plugin.json declares, and how it is run. */
export interface ProgramDeclaration {
  command: Command;
  args: readonly string[];
  /** Variables besides those that every program gets, in the order of the file. */
  env: readonly (readonly [name: string, parts: readonly EnvPart[]])[];
  /** Where it runs: relative to the plugin's folder, "." for that itself, or absolute. */
  workDir: string;
  permissionClass: PermissionClass;
  /** Whether it gets the machine's network in the sandbox. */
  network: boolean;
  /** Where those of its parts stand in the file that are checked later. */
  lines: { command: number; workDir: number };
}

/** A program: by a name on the PATH, by its absolute path, or by its path in the plugin's folder. */
export interface Command {
  kind: "name" | "absolute" | "own";
  path: string;
}

export const PROGRAM_KEYS = ["command", "args", "env", "work_dir", "permission_class", "network"] as const;

/** Reads one. `allowed` are the variables of the agent's environment that the plugin may refer to. */
export function readProgram(
  reader: JsonReader,
  field: (key: (typeof PROGRAM_KEYS)[number]) => JsonPlace,
  allowed: ReadonlySet<string>,
  usualClass: PermissionClass,
): ProgramDeclaration {
  return {
    command: command(reader, field("command")),
    args: reader.items(field("args"), "args").map((item) => reader.text(item, "args") ?? ""),
    env: reader.members(field("env"), "env").map(([name, value]) => variable(reader, name, value, allowed)),
    workDir: workDir(reader, field("work_dir")),
    permissionClass: permissionClass(reader, field("permission_class"), usualClass),
    network: reader.flag(field("network"), "network"),
    lines: { command: reader.lineOf(field("command")), workDir: reader.lineOf(field("work_dir")) },
  };
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
): readonly [string, readonly EnvPart[]] {
  if (!isVariableName(name) || isReeveVariable(name))
    reader.report(place, `env: "${name}" is no name of a variable that a plugin may set`);
  return [name, readTemplate(reader, place, `env.${name}`, allowed)];
}

function permissionClass(reader: JsonReader, place: JsonPlace, usual: PermissionClass): PermissionClass {
  const name = reader.text(place, "permission_class") ?? usual;
  const known = PERMISSION_CLASSES.find((one) => one === name);
  if (known === undefined) reader.report(place, `permission_class must be one of ${PERMISSION_CLASSES.join(", ")}`);
  return known ?? "read_only";
}
