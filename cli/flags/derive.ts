import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Choice, Flag, FlagShape, FlagValue } from "./flag.ts";

/** What a flag is called whose plain name means something else already. */
const PREFIX = "arg-";

/**
 * The flags for a tool's input schema, one a property, in the schema's order: kebab-case names, switches for booleans,
 * repetition for arrays, KEY=VALUE for maps of simple values, JSON for what has no simple form.
 *
 * @param taken names that mean something else; a property of such a name gets the prefix "arg-".
 */
export function deriveFlags(schema: JsonObject, taken: ReadonlySet<string> = new Set()): Flag[] {
  const required = new Set(listOf(schema.required));
  const names = new Set(taken);
  return Object.entries(objectOf(schema.properties)).map(([field, property]) => {
    const name = freeName(kebabCase(field), names);
    const resolved = resolve(objectOf(property), schema);
    const description = textOf(objectOf(property).description) || textOf(resolved.description);
    return { name, field, ...shapeOf(resolved, schema), required: required.has(field), description };
  });
}

/** A JSON name as a flag: timeoutMs → timeout-ms. */
export function kebabCase(name: string): string {
  return name
    .replace(/([a-z0-9])([A-Z])/g, "$1-$2")
    .replaceAll(/[_\s]+/g, "-")
    .toLowerCase();
}

function freeName(wanted: string, names: Set<string>): string {
  let name = wanted;
  while (names.has(name) || names.has(`no-${name}`) || names.has(name.replace(/^no-/, ""))) name = PREFIX + name;
  names.add(name);
  return name;
}

function shapeOf(schema: JsonObject, root: JsonObject): { shape: FlagShape; value: FlagValue } {
  if (typesOf(schema).includes("array")) {
    const item = resolve(objectOf(schema.items), root);
    return { shape: "list", value: flagValueOf(item) };
  }
  const values = resolve(objectOf(schema.additionalProperties), root);
  if (isMap(schema) && flagValueOf(values).kind !== "json") return { shape: "map", value: flagValueOf(values) };
  return { shape: "one", value: flagValueOf(schema) };
}

function isMap(schema: JsonObject): boolean {
  const values = schema.additionalProperties;
  return typesOf(schema).includes("object") && schema.properties === undefined && typeof values === "object";
}

function flagValueOf(schema: JsonObject): FlagValue {
  const types = typesOf(schema);
  const values = listOf(schema.enum).filter((value) => typeof value === "string");
  if (values.length > 0) return { kind: "choice", choices: choicesOf(values) };
  if (types.includes("integer")) return { kind: "integer", orText: types.includes("string") };
  if (types.includes("number")) return { kind: "number" };
  if (types.includes("boolean")) return { kind: "switch" };
  if (!types.includes("string")) return { kind: "json" };
  return schema.contentEncoding === "base64" ? { kind: "bytes" } : { kind: "text" };
}

/** Short names: what is left of enum values without the words that all of them begin with. */
function choicesOf(values: readonly string[]): Choice[] {
  const words = values.map((value) => value.split("_"));
  const shared = values.length < 2 ? 0 : sharedWords(words);
  return values.map((value, index) => {
    const short = words[index]?.slice(shared).join("_").toLowerCase() ?? "";
    return { value, short: short === "" ? value.toLowerCase() : short };
  });
}

function sharedWords(words: readonly (readonly string[])[]): number {
  const [first = []] = words;
  const differs = first.findIndex((word, index) => words.some((other) => other[index] !== word));
  // All of the first one's words: its last one has to stay.
  return differs < 0 ? first.length - 1 : differs;
}

/** A schema behind a `$ref` into `$defs`. Stops at a reference to a reference: then the value is plain JSON. */
function resolve(schema: JsonObject, root: JsonObject): JsonObject {
  const found = /^#\/\$defs\/(.+)$/.exec(textOf(schema.$ref))?.[1];
  if (found === undefined) return schema;
  const definitions = objectOf(root.$defs);
  return Object.hasOwn(definitions, found) ? objectOf(definitions[found]) : {};
}

function typesOf(schema: JsonObject): JsonValue[] {
  const type = schema.type;
  return Array.isArray(type) ? type : type === undefined ? [] : [type];
}

function objectOf(value: JsonValue | undefined): JsonObject {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value : {};
}

function listOf(value: JsonValue | undefined): JsonValue[] {
  return Array.isArray(value) ? value : [];
}

function textOf(value: JsonValue | undefined): string {
  return typeof value === "string" ? value : "";
}
