import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { type JsonSchema, memberOf, resolved, schemaAt } from "./json-schema.ts";
import { type CommandPart, commandPartOf } from "./keywords.ts";

/** One field of a command: where it is in the arguments, and what it holds. */
export interface CommandField {
  /** In JSON names: "argv", "steps[2].argv". */
  path: string;
  value: JsonValue;
}

/** A command in a call's arguments: the fields of one object that hold its parts. */
export type CommandFields = Readonly<Partial<Record<CommandPart, CommandField>>>;

/** By schema: one object serves all calls of a tool. */
const known = new WeakMap<JsonSchema, boolean>();

/**
 * The commands in a call's arguments, as the tool's schema marks them, in lists and nested objects too. Empty for a tool that
 * runs no command of its caller. Pure.
 */
export function commandsIn(schema: JsonSchema, args: JsonObject): CommandFields[] {
  const mayHold = known.get(schema) ?? JSON.stringify(schema).includes('"x-reeve-command":');
  known.set(schema, mayHold);
  const found: CommandFields[] = [];
  if (mayHold) collect(args, schema, schema, "", found);
  return found;
}

function collect(value: JsonValue, schema: JsonSchema, root: JsonSchema, path: string, found: CommandFields[]): void {
  const own = resolved(schema, root);
  if (own === undefined || typeof value !== "object" || value === null) return;
  if (Array.isArray(value)) {
    const items = schemaAt(own.items);
    if (items) for (const [at, item] of value.entries()) collect(item, items, root, `${path}[${at}]`, found);
    return;
  }
  const properties = schemaAt(own.properties);
  const others = schemaAt(own.additionalProperties);
  const command: Partial<Record<CommandPart, CommandField>> = {};
  for (const [name, inner] of Object.entries(value)) {
    const field = memberOf(properties, name) ?? others;
    if (field === undefined) continue;
    const innerPath = path === "" ? name : `${path}.${name}`;
    const part = commandPartOf(field);
    if (part === undefined) collect(inner, field, root, innerPath, found);
    else command[part] = { path: innerPath, value: inner };
  }
  if (Object.keys(command).length > 0) found.push(command);
}
