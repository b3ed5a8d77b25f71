import { isFieldSet, type JsonValue } from "@bufbuild/protobuf";
import { type FieldRules, FieldRulesSchema } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { type JsonSchema, withAll, withComment } from "../tool/json-schema.ts";

/** The rules of any of the twelve number types: same names, different value types. */
export type NumberRules = Extract<FieldRules["type"], { value: { lessThan: { case: "lt" | "lte" | undefined } } }> & {
  case: "float" | "double" | `${"" | "s" | "u"}int${32 | 64}` | `${"" | "s"}fixed${32 | 64}`;
};

type Bound = number | bigint;

/**
 * The keywords for number rules. The bounds of 64-bit types hold for the number form only: JSON Schema cannot compare
 * strings of digits. A bound that a double cannot hold is left out, which is looser.
 */
export function numberRules(schema: JsonSchema, rules: NumberRules): JsonSchema {
  const { value } = rules;
  const more: JsonSchema[] = [];
  if (value.in.length > 0) more.push({ enum: value.in.flatMap(jsonForms) });
  if (value.notIn.length > 0) more.push({ not: { enum: value.notIn.flatMap(jsonForms) } });
  if (hasConst(rules)) more.push({ enum: jsonForms(value.const) });
  if (value.example.length > 0) more.push({ examples: value.example.filter(isExact).map(Number) });
  return withAll(bounds(schema, value.greaterThan, value.lessThan), more);
}

/** The schema of a number that must not be zero. */
export function notZero(schema: JsonSchema): JsonSchema {
  return withAll(schema, [{ not: { enum: jsonForms(Array.isArray(schema.type) ? 0n : 0) } }]);
}

function bounds(
  schema: JsonSchema,
  above: NumberRules["value"]["greaterThan"],
  below: NumberRules["value"]["lessThan"],
): JsonSchema {
  if (above.case && below.case && above.value >= below.value) {
    return withComment(schema, `${above.case} ${above.value} or ${below.case} ${below.value}`);
  }
  const result = { ...schema };
  if (above.case && isExact(above.value)) {
    delete result.minimum;
    result[above.case === "gte" ? "minimum" : "exclusiveMinimum"] = Number(above.value);
  }
  if (below.case && isExact(below.value)) {
    delete result.maximum;
    result[below.case === "lte" ? "maximum" : "exclusiveMaximum"] = Number(below.value);
  }
  return result;
}

function hasConst({ case: kind, value }: NumberRules): boolean {
  const field = FieldRulesSchema.field[kind].message?.field.const;
  return field !== undefined && isFieldSet(value, field);
}

function jsonForms(value: Bound): JsonValue[] {
  if (typeof value === "number") return [value];
  return isExact(value) ? [Number(value), String(value)] : [String(value)];
}

function isExact(value: Bound): boolean {
  return typeof value === "number" ? Number.isFinite(value) : Number.isSafeInteger(Number(value));
}
