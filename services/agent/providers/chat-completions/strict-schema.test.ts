import type { JsonObject } from "@bufbuild/protobuf";
import { expect, it } from "vitest";
import { strictSchema } from "./strict-schema.ts";

const closed = (properties: JsonObject, required = Object.keys(properties)): JsonObject => ({
  type: "object",
  properties,
  required,
  additionalProperties: false,
});
const text: JsonObject = { type: "string", description: "A text." };

it("takes a schema whose objects are closed and whose properties are required, without what strict mode refuses", () => {
  const narrow: JsonObject = { ...text, minLength: 1, maxLength: 9, pattern: "^/" };
  const list: JsonObject = { type: "array", maxItems: 3, items: closed({ a: narrow }) };
  expect(strictSchema(closed({ narrow, list, kind: { type: "string", enum: ["x"] } }))).toEqual(
    closed({
      narrow: text,
      list: { type: "array", items: closed({ a: text }) },
      kind: { type: "string", enum: ["x"] },
    }),
  );
  expect(strictSchema(closed({}))).toEqual(closed({}));
});

it.each<[string, JsonObject]>([
  ["an optional property", closed({ a: text }, [])],
  ["an optional property further in", closed({ a: closed({ b: text }, []) })],
  ["an open object", { type: "object", properties: { a: text }, required: ["a"] }],
  ["a map", closed({ a: { type: "object", additionalProperties: { type: "string" } } })],
  ["a choice", closed({ a: { oneOf: [text] } })],
  ["a reference", { ...closed({ a: { $ref: "#/$defs/A" } }), $defs: { A: text } }],
  ["a list of anything", closed({ a: { type: "array" } })],
  ["anything", closed({ a: {} })],
])("leaves a schema with %s as it is", (_, schema) => {
  expect(strictSchema(schema)).toBeUndefined();
});
