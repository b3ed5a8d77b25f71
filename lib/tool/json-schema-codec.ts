import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { RE2JS } from "@bufbuild/re2";
import { Ajv2020, type ErrorObject } from "ajv/dist/2020.js";
import type { InputProblem } from "../fault/invalid-input.ts";
import type { Codec } from "./codec.ts";
import type { JsonSchema } from "./json-schema.ts";
import { KEYWORDS } from "./keywords.ts";

/** The most steps that checking one input may take: its values times the schemas that each could be held to. */
const MAX_STEPS = 20_000_000;

/** Ajv's own patterns backtrack, and both text and pattern may be another party's: these take time linear in the text. */
const linearPattern = Object.assign(
  (pattern: string) => {
    const compiled = RE2JS.compile(pattern);
    // Ajv takes two patterns with the same text for one.
    return { test: (text: string): boolean => compiled.test(text), toString: () => pattern };
  },
  { code: "linearPattern" },
);

/**
 * The codec of an input that a JSON Schema 2020-12 defines. The one form of an input is the input itself: nothing is dropped,
 * converted or filled in. Names the first field that is wrong.
 *
 * @param schema must have passed `checkSchema` where another party wrote it. Throws an Error where it does not compile.
 * @param size how many schemas it is made of, each `$ref` counted as what it stands for.
 */
export function jsonSchemaCodec(schema: JsonSchema, size: number): Codec<JsonObject> {
  const ajv = new Ajv2020({
    strict: true,
    strictTypes: false,
    strictRequired: false,
    strictTuples: false,
    allowUnionTypes: true,
    validateFormats: false,
    ownProperties: true,
    messages: true,
    logger: false,
    code: { regExp: linearPattern },
  });
  ajv.addVocabulary(Object.values(KEYWORDS));
  // Ajv knows no other dialects; the keywords that are taken mean the same in all of them.
  const { $schema: _, ...dialectless } = schema;
  const validate = ajv.compile(dialectless);
  return {
    parse(args) {
      if (countValues(args) * size > MAX_STEPS) {
        return { ok: false, problems: [{ field: "", rule: "size", message: "has too many values to be checked" }] };
      }
      if (validate(args)) return { ok: true, input: args };
      return { ok: false, problems: (validate.errors ?? []).slice(0, 1).map(problemOf) };
    },
    toJson: (input) => input,
  };
}

/** Walks level by level, so that no depth is too deep. */
function countValues(value: JsonValue): number {
  let count = 0;
  for (let level: JsonValue[] = [value]; level.length > 0; ) {
    count += level.length;
    level = level.flatMap((one) => (typeof one === "object" && one !== null ? Object.values(one) : []));
  }
  return count;
}

function problemOf({ instancePath, keyword, params, message = "is not valid" }: ErrorObject): InputProblem {
  const path = pathOf(instancePath);
  if (keyword === "required") return problem(within(path, params.missingProperty), "required", "is required");
  if (keyword === "additionalProperties")
    return problem(within(path, params.additionalProperty), "unknown_field", "there is no such field");
  return problem(path, keyword, message);
}

function problem(field: string, rule: string, message: string): InputProblem {
  return { field: printable(field), rule, message: printable(message) };
}

/** A JSON pointer as a path in JSON names: "/steps/2/name" is "steps[2].name". */
function pathOf(pointer: string): string {
  const names = pointer
    .split("/")
    .slice(1)
    .map((name) => name.replaceAll("~1", "/").replaceAll("~0", "~"));
  return names.reduce((path, name) => (/^\d+$/.test(name) ? `${path}[${name}]` : within(path, name)), "");
}

function within(path: string, name: unknown): string {
  return path === "" ? String(name) : `${path}.${String(name)}`;
}

/** Text that holds what a caller sent, safe to show and short. */
function printable(text: string): string {
  return text.replace(/[^\x20-\x7e]/g, "?").slice(0, 300);
}
