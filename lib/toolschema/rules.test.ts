import type { FileRegistry } from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import { beforeAll, describe, expect, it } from "vitest";
import { compileProtos } from "../../scripts/compile-proto.ts";
import { messageSchema } from "./schema.ts";

/** A field's type and rules, and the schema that they give. */
const FIELDS: readonly [declaration: string, schema: object][] = [
  [
    "string f = 1 [(buf.validate.field).string = {min_len: 2, max_len: 5}]",
    { type: "string", minLength: 2, maxLength: 5 },
  ],
  ["string f = 1 [(buf.validate.field).string.len = 3]", { type: "string", minLength: 3, maxLength: 3 }],
  [
    "string f = 1 [(buf.validate.field).string = {min_bytes: 5, max_bytes: 8}]",
    { type: "string", minLength: 2, maxLength: 8 },
  ],
  ["string f = 1 [(buf.validate.field).string = {max_len: 4, max_bytes: 8}]", { type: "string", maxLength: 4 }],
  ['string f = 1 [(buf.validate.field).string.pattern = "^a+$"]', { type: "string", pattern: "^a+$" }],
  ['string f = 1 [(buf.validate.field).string.pattern = "(?i)a"]', { type: "string", $comment: "RE2 pattern (?i)a" }],
  [
    'string f = 1 [(buf.validate.field).string = {prefix: "a.", suffix: "z"}]',
    { type: "string", pattern: "^a\\.", allOf: [{ pattern: "z$" }] },
  ],
  ['string f = 1 [(buf.validate.field).string.not_contains = ".."]', { type: "string", not: { pattern: "\\.\\." } }],
  ['string f = 1 [(buf.validate.field).string = {in: ["a", "b"]}]', { type: "string", enum: ["a", "b"] }],
  ['string f = 1 [(buf.validate.field).string = {const: ""}]', { type: "string", const: "" }],
  ['string f = 1 [(buf.validate.field).string.example = "a"]', { type: "string", examples: ["a"] }],
  ["string f = 1 [(buf.validate.field).string.uuid = true]", { type: "string", format: "uuid" }],
  [
    "string f = 1 [(buf.validate.field).string.host_and_port = true]",
    { type: "string", $comment: "format hostAndPort" },
  ],
  [
    "string f = 1 [(buf.validate.field) = {ignore: IGNORE_IF_ZERO_VALUE, string: {min_len: 2}}]",
    { anyOf: [{ type: "string", minLength: 2 }, { enum: [""] }] },
  ],
  ["string f = 1 [(buf.validate.field) = {ignore: IGNORE_ALWAYS, string: {min_len: 2}}]", { type: "string" }],
  ["string f = 1 [(buf.validate.field).required = true]", { type: "string", minLength: 1 }],
  [
    'string f = 1 [(buf.validate.field).cel = {id: "even", message: "m", expression: "size(this) % 2 == 0"}]',
    { type: "string", $comment: "even: size(this) % 2 == 0" },
  ],
  ["bool f = 1 [(buf.validate.field).bool.const = true]", { type: "boolean", const: true }],
  ["bool f = 1 [(buf.validate.field).required = true]", { type: "boolean", const: true }],
  ["int32 f = 1", { type: "integer", minimum: -2147483648, maximum: 2147483647 }],
  [
    "int32 f = 1 [(buf.validate.field).int32 = {gt: 0, lt: 9}]",
    { type: "integer", exclusiveMinimum: 0, exclusiveMaximum: 9 },
  ],
  [
    "uint32 f = 1 [(buf.validate.field).uint32 = {gt: 9, lt: 3}]",
    { type: "integer", minimum: 0, maximum: 4294967295, $comment: "gt 9 or lt 3" },
  ],
  [
    "int64 f = 1 [(buf.validate.field).int64.gte = 1]",
    { type: ["integer", "string"], pattern: "^-?[0-9]{1,19}$", minimum: 1 },
  ],
  [
    "uint64 f = 1 [(buf.validate.field).uint64.lte = 18446744073709551615]",
    { type: ["integer", "string"], minimum: 0, pattern: "^[0-9]{1,20}$" },
  ],
  [
    "uint64 f = 1 [(buf.validate.field).uint64 = {in: [1, 2]}]",
    { type: ["integer", "string"], minimum: 0, pattern: "^[0-9]{1,20}$", enum: [1, "1", 2, "2"] },
  ],
  [
    "int32 f = 1 [(buf.validate.field).int32 = {const: 0}]",
    { type: "integer", minimum: -2147483648, maximum: 2147483647, enum: [0] },
  ],
  ["double f = 1 [(buf.validate.field).double = {gte: 0.5, lte: 1.5}]", { type: "number", minimum: 0.5, maximum: 1.5 }],
  ["double f = 1 [(buf.validate.field).double = {not_in: [1]}]", { type: "number", not: { enum: [1] } }],
  ["double f = 1 [(buf.validate.field).required = true]", { type: "number", not: { enum: [0] } }],
  [
    "bytes f = 1 [(buf.validate.field).bytes = {min_len: 1, max_len: 4}]",
    { type: "string", contentEncoding: "base64", pattern: "^[A-Za-z0-9+/_-]*={0,2}$", minLength: 2, maxLength: 8 },
  ],
  ["E f = 1", { type: "string", enum: ["E_A", "E_B"] }],
  ["E f = 1 [(buf.validate.field).enum = {not_in: [2]}]", { type: "string", enum: ["E_A"] }],
  ["E f = 1 [(buf.validate.field).enum = {in: [0, 2]}]", { type: "string", enum: ["E_B"] }],
  ["E f = 1 [(buf.validate.field).enum = {const: 1}]", { type: "string", enum: ["E_A"] }],
  [
    "repeated string f = 1 [(buf.validate.field).repeated = {min_items: 1, max_items: 3, unique: true, items: {string: {max_len: 2}}}]",
    { type: "array", items: { type: "string", maxLength: 2 }, minItems: 1, maxItems: 3, uniqueItems: true },
  ],
  [
    "repeated E f = 1 [(buf.validate.field).required = true]",
    { type: "array", items: { type: "string", enum: ["E_A", "E_B"] }, minItems: 1 },
  ],
  [
    'map<string, bool> f = 1 [(buf.validate.field).map = {min_pairs: 1, max_pairs: 2, keys: {string: {pattern: "^k"}}}]',
    {
      type: "object",
      propertyNames: { pattern: "^k" },
      additionalProperties: { type: "boolean" },
      minProperties: 1,
      maxProperties: 2,
    },
  ],
  [
    "map<bool, double> f = 1",
    { type: "object", propertyNames: { enum: ["true", "false"] }, additionalProperties: { type: "number" } },
  ],
  [
    "google.protobuf.Duration f = 1 [(buf.validate.field).duration.lte = {seconds: 5}]",
    { type: "string", pattern: "^-?[0-9]{1,12}(\\.[0-9]{1,9})?s$", $comment: "duration: { lte: { seconds: 5 } }" },
  ],
];

const HEAD = `syntax = "proto3";
package sample.v1;
import "buf/validate/validate.proto";
import "google/protobuf/duration.proto";
enum E { E_UNSPECIFIED = 0; E_A = 1; E_B = 2; }
`;

let registry: FileRegistry;
beforeAll(async () => {
  const messages = FIELDS.map(([declaration], i) => `message M${i} { ${declaration}; }`);
  registry = await compileProtos({ "sample/v1/sample.proto": HEAD + messages.join("\n") });
});

function fieldOf(index: number, direction: "input" | "output"): object {
  const message = registry.getMessage(`sample.v1.M${index}`);
  if (!message) throw new Error(`no message ${index}`);
  const schema = messageSchema(message, { direction, names: new Map(), validator: createValidator({ registry }) });
  const { description: _, ...field } = (schema.properties as Record<string, Record<string, unknown>>).f ?? {};
  return field;
}

describe("the schema of a field", () => {
  it.each(FIELDS.map(([declaration, schema], index) => ({ declaration, schema, index })))("$declaration", (row) => {
    expect(fieldOf(row.index, "input")).toEqual(row.schema);
  });

  it("holds no rules where a tool returns the field", () => {
    expect(fieldOf(0, "output")).toEqual({ type: "string" });
    const anyValue = FIELDS.findIndex(([declaration]) => declaration === "E f = 1");
    expect(fieldOf(anyValue, "output")).toEqual({ type: "string", enum: ["E_UNSPECIFIED", "E_A", "E_B"] });
  });
});
