import type { JsonValue } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { parseStrictJson } from "../../lib/json/strict-json.ts";
import { UsageError } from "../errors/usage-error.ts";
import type { Choice, FlagValue } from "./flag.ts";
import type { FlagWord } from "./words.ts";

/** Reads a file that the command line names. */
export type ReadFile = (path: string) => Uint8Array;

/** What one typed text means. Throws a UsageError that names the flag. */
export function parseValue(value: FlagValue, text: string, name: string, readFile: ReadFile): JsonValue {
  switch (value.kind) {
    case "text":
      return wellFormed(text, name);
    case "integer":
      return parseInteger(text, value.orText, name);
    case "number":
      return parseNumber(text, name);
    case "switch":
      return parseBoolean(text, name);
    case "choice":
      return parseChoice(value.choices, text, name);
    case "bytes":
      return text.startsWith("@") ? Buffer.from(readNamed(text.slice(1), name, readFile)).toString("base64") : text;
    case "json":
      return parseJson(text, name);
  }
}

/** What a switch says: "--all", "--no-all", "--all=false". */
export function parseSwitch({ name, attached }: FlagWord, negated: boolean): boolean {
  if (attached === undefined) return !negated;
  if (negated) throw new UsageError(`${name} takes no value`);
  return parseBoolean(attached, name);
}

/** A JSON text, strictly: what is wrong is named, duplicate keys too. Throws a UsageError. */
export function parseJson(text: string, name: string): JsonValue {
  try {
    return parseStrictJson(new TextEncoder().encode(text));
  } catch (error: unknown) {
    throw new UsageError(`${name}: ${ConnectError.from(error).rawMessage}`, [], { cause: error });
  }
}

function wellFormed(text: string, name: string): string {
  if (text.isWellFormed()) return text;
  throw new UsageError(`${name}: not valid UTF-8`);
}

function parseInteger(text: string, orText: boolean, name: string): JsonValue {
  if (!/^-?\d{1,20}$/.test(text)) throw new UsageError(`${name}: ${JSON.stringify(text)} is no whole number`);
  const number = Number(text);
  if (Number.isSafeInteger(number)) return number;
  if (orText) return text;
  throw new UsageError(`${name}: ${text} is too large`);
}

function parseNumber(text: string, name: string): number {
  const number = Number(text);
  if (text.trim() === text && text !== "" && Number.isFinite(number)) return number;
  throw new UsageError(`${name}: ${JSON.stringify(text)} is no number`);
}

function parseBoolean(text: string, name: string): boolean {
  if (text === "true" || text === "false") return text === "true";
  throw new UsageError(`${name}: ${JSON.stringify(text)} is neither true nor false`);
}

function parseChoice(choices: readonly Choice[], text: string, name: string): string {
  const wanted = text.toLowerCase().replaceAll("-", "_");
  const found = choices.find(({ value, short }) => value.toLowerCase() === wanted || short === wanted);
  if (found !== undefined) return found.value;
  const known = choices.map(({ short }) => short).join(", ");
  throw new UsageError(`${name}: ${JSON.stringify(text)} is none of: ${known}`);
}

function readNamed(path: string, name: string, readFile: ReadFile): Uint8Array {
  try {
    return readFile(path);
  } catch (error: unknown) {
    const why = error instanceof Error ? error.message : String(error);
    throw new UsageError(`${name}: ${path} cannot be read: ${why}`, [], { cause: error });
  }
}
