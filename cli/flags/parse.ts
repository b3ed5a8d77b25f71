import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { UsageError } from "../errors/usage-error.ts";
import type { Flag } from "./flag.ts";
import { parseSwitch, parseValue, type ReadFile } from "./value.ts";
import { createWords, type FlagWord, flagWord, valueFor, type Words } from "./words.ts";

/** The flag that takes what stands after "--", where a tool has it. */
const REST_FIELD = "argv";

/**
 * The input that flags make, without defaults: what was not said is left out. What stands after "--" goes to the list
 * "argv", where the tool has one. Checks form only; the schema is checked where the call is received.
 *
 * @param readFile reads the file of `@file`, for bytes.
 *
 * Throws a UsageError that names the flag.
 */
export function parseFlags(argv: readonly string[], flags: readonly Flag[], readFile: ReadFile): JsonObject {
  const words = createWords(argv);
  // A map, so that no property name of a schema can mean something to an object.
  const input = new Map<string, JsonValue>();
  for (let word = words.take(); word !== undefined; word = words.take()) {
    if (word === "--") takeRest(words.rest(), flags, input);
    else takeFlag(word, words, flags, input, readFile);
  }
  const missing = flags.filter((flag) => flag.required && !input.has(flag.field));
  if (missing.length > 0) {
    const names = missing.map((flag) => `--${flag.name}`).join(", ");
    throw new UsageError(`${names} ${missing.length === 1 ? "is" : "are"} required`);
  }
  return Object.fromEntries(input);
}

function takeFlag(
  word: string,
  words: Words,
  flags: readonly Flag[],
  input: Map<string, JsonValue>,
  readFile: ReadFile,
): void {
  const typed = flagWord(word);
  if (typed === undefined)
    throw new UsageError(`${JSON.stringify(word)} belongs to no flag`, [listFlags(flags), ...restHint(word, flags)]);
  const { flag, negated } = findFlag(typed, flags);
  if (flag.shape === "one" && input.has(flag.field)) throw new UsageError(`${typed.name} is given twice`);
  if (flag.value.kind === "switch" && flag.shape === "one") {
    input.set(flag.field, parseSwitch(typed, negated));
    return;
  }
  add(flag, valueFor(typed, words), input, readFile);
}

function restHint(word: string, flags: readonly Flag[]): string[] {
  const takesRest = flags.some(({ field, shape }) => field === REST_FIELD && shape === "list");
  return takesRest ? [`a program and its arguments stand after "--": -- ${word} …`] : [];
}

function findFlag({ name }: FlagWord, flags: readonly Flag[]): { flag: Flag; negated: boolean } {
  const plain = flags.find((flag) => `--${flag.name}` === name);
  if (plain !== undefined) return { flag: plain, negated: false };
  const negated = flags.find(
    (flag) => flag.value.kind === "switch" && flag.shape === "one" && `--no-${flag.name}` === name,
  );
  if (negated !== undefined) return { flag: negated, negated: true };
  throw new UsageError(`the tool has no flag ${name}`, [listFlags(flags)]);
}

function listFlags(flags: readonly Flag[]): string {
  return flags.length === 0 ? "the tool has no flags" : `flags: ${flags.map((flag) => `--${flag.name}`).join(" ")}`;
}

function add(flag: Flag, text: string, input: Map<string, JsonValue>, readFile: ReadFile): void {
  const name = `--${flag.name}`;
  if (flag.shape === "one") input.set(flag.field, parseValue(flag.value, text, name, readFile));
  else if (flag.shape === "list") {
    const list = input.get(flag.field);
    const value = parseValue(flag.value, text, name, readFile);
    input.set(flag.field, Array.isArray(list) ? [...list, value] : [value]);
  } else addEntry(flag, text, input, readFile);
}

function addEntry(flag: Flag, text: string, input: Map<string, JsonValue>, readFile: ReadFile): void {
  const cut = text.indexOf("=");
  if (cut <= 0) throw new UsageError(`--${flag.name}: write KEY=VALUE, not ${JSON.stringify(text)}`);
  const key = text.slice(0, cut);
  const before = (input.get(flag.field) ?? {}) as JsonObject;
  if (Object.hasOwn(before, key)) throw new UsageError(`--${flag.name}: the key ${JSON.stringify(key)} is given twice`);
  if (key === "__proto__") throw new UsageError(`--${flag.name}: the key "__proto__" is reserved`);
  input.set(flag.field, { ...before, [key]: parseValue(flag.value, text.slice(cut + 1), `--${flag.name}`, readFile) });
}

function takeRest(rest: readonly string[], flags: readonly Flag[], input: Map<string, JsonValue>): void {
  const flag = flags.find(
    ({ field, shape, value }) => field === REST_FIELD && shape === "list" && value.kind === "text",
  );
  if (flag === undefined) throw new UsageError(`the tool takes nothing after "--"`, [listFlags(flags)]);
  const before = input.get(flag.field);
  const all = [...(Array.isArray(before) ? before : []), ...rest];
  if (all.length > 0) input.set(flag.field, all);
}
