import type { JsonObject } from "@bufbuild/protobuf";
import { isNotBlank } from "../programs/run-input.ts";
import { schemaAt } from "../tool/json-schema.ts";
import { isToolName } from "../toolschema/names.ts";
import type { JsonPlace, JsonReader } from "./json-reader.ts";
import { PROGRAM_KEYS, type ProgramDeclaration, readProgram } from "./program-declaration.ts";

/** A tool as a plugin.json declares it. */
export interface ToolDeclaration extends ProgramDeclaration {
  /** Without the plugin's name. */
  name: string;
  description: string;
  inputSchema: JsonObject;
  timeoutSeconds: number;
  /** Whether several calls of it may run at a time. */
  concurrencySafe: boolean;
  readOnly: boolean;
  destructive: boolean;
  /** Where it and its schema stand in the file, from 1. */
  line: number;
  schemaLine: number;
}

const KEYS = [
  ...["name", "description", "input_schema", "timeout_seconds", "concurrency_safe", "read_only", "destructive"],
  ...PROGRAM_KEYS,
];

/** How long a call may take where its declaration does not say, in seconds. */
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
    ...readProgram(reader, field, allowed, readOnly ? "read_only" : "workspace"),
    name: toolName(reader, field("name")),
    description: description(reader, field("description")),
    inputSchema: inputSchema(reader, field("input_schema")),
    timeoutSeconds: readTimeoutSeconds(reader, field("timeout_seconds")),
    concurrencySafe: reader.flag(field("concurrency_safe"), "concurrency_safe"),
    readOnly,
    destructive,
    line: reader.lineOf(place),
    schemaLine: reader.lineOf(field("input_schema")),
  };
}

/** How long a call may take, in seconds. */
export function readTimeoutSeconds(reader: JsonReader, place: JsonPlace): number {
  return reader.integer(place, "timeout_seconds", { min: 1, max: MAX_TIMEOUT_S }) ?? DEFAULT_TIMEOUT_S;
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
