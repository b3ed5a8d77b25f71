import { type DescField, getOption, hasOption, isFieldSet, type JsonValue, ScalarType } from "@bufbuild/protobuf";
import { toText } from "@bufbuild/protobuf/txtpb";
import {
  type BoolRules,
  BoolRulesSchema,
  type EnumRules,
  EnumRulesSchema,
  type FieldRules,
  FieldRulesSchema,
  field as fieldRules,
  Ignore,
  type MapRules,
  type RepeatedRules,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { type JsonSchema, withComment } from "../tool/json-schema.ts";
import { notZero, numberRules } from "./number-rules.ts";
import { bytesRules, stringRules } from "./string-rules.ts";

/** The protovalidate rules of a field; undefined where it has none. */
export function rulesOf(field: DescField): FieldRules | undefined {
  return hasOption(field, fieldRules) ? getOption(field, fieldRules) : undefined;
}

/**
 * The schema of one value with the keywords that its rules allow for. What JSON Schema cannot say becomes a
 * `$comment`; the receiver of the value validates it again with protovalidate. So the schema may accept what the
 * rules refuse, and never the other way round.
 */
export function withRules(schema: JsonSchema, rules: FieldRules | undefined): JsonSchema {
  if (!rules || rules.ignore === Ignore.ALWAYS) return schema;
  const typed = withCel(withTypeRules(schema, rules), rules);
  return rules.ignore === Ignore.IF_ZERO_VALUE ? orZero(typed) : typed;
}

/** The schema of a field that must not have its type's zero value: what `required` means without presence. */
export function notEmpty(schema: JsonSchema, field: DescField): JsonSchema {
  switch (field.fieldKind) {
    case "list":
      return { minItems: 1, ...schema };
    case "map":
      return { minProperties: 1, ...schema };
    case "scalar":
      return notZeroScalar(schema, field.scalar);
    case "enum":
    case "message":
      return schema;
  }
}

/** The numbers of an enum that its rules allow; `all` where there are no such rules. */
export function allowedNumbers(all: readonly number[], rules: EnumRules | undefined): readonly number[] {
  if (!rules) return all;
  if (isFieldSet(rules, EnumRulesSchema.field.const)) return [rules.const];
  const [among, not] = [new Set(rules.in), new Set(rules.notIn)];
  return all.filter((n) => (among.size === 0 || among.has(n)) && !not.has(n));
}

function withTypeRules(schema: JsonSchema, rules: FieldRules): JsonSchema {
  const { type } = rules;
  switch (type.case) {
    case undefined:
    case "enum":
      return schema;
    case "string":
      return stringRules(schema, type.value);
    case "bytes":
      return bytesRules(schema, type.value);
    case "bool":
      return { ...schema, ...boolConst(type.value) };
    case "repeated":
      return { ...schema, ...itemLimits(type.value) };
    case "map":
      return { ...schema, ...pairLimits(type.value) };
    case "any":
    case "duration":
    case "timestamp":
    case "fieldMask":
      return withComment(schema, oneLine(toText(FieldRulesSchema, rules)));
    default:
      return numberRules(schema, type);
  }
}

function boolConst(rules: BoolRules): JsonSchema {
  return isFieldSet(rules, BoolRulesSchema.field.const) ? { const: rules.const } : {};
}

function itemLimits(rules: RepeatedRules): JsonSchema {
  return {
    ...(rules.minItems > 0n ? { minItems: Number(rules.minItems) } : {}),
    ...(rules.maxItems > 0n ? { maxItems: Number(rules.maxItems) } : {}),
    ...(rules.unique ? { uniqueItems: true } : {}),
  };
}

function pairLimits(rules: MapRules): JsonSchema {
  return {
    ...(rules.minPairs > 0n ? { minProperties: Number(rules.minPairs) } : {}),
    ...(rules.maxPairs > 0n ? { maxProperties: Number(rules.maxPairs) } : {}),
  };
}

function withCel(schema: JsonSchema, rules: FieldRules): JsonSchema {
  const expressions = [...rules.celExpression, ...rules.cel.map((rule) => `${rule.id}: ${rule.expression}`)];
  return expressions.reduce(withComment, schema);
}

function notZeroScalar(schema: JsonSchema, scalar: ScalarType): JsonSchema {
  if (scalar === ScalarType.STRING || scalar === ScalarType.BYTES) return { minLength: 1, ...schema };
  if (scalar === ScalarType.BOOL) return { ...schema, const: true };
  return notZero(schema);
}

function orZero(schema: JsonSchema): JsonSchema {
  const zero = zeroOf(schema.type);
  return zero === undefined ? schema : { anyOf: [schema, { enum: zero }] };
}

function zeroOf(type: JsonValue | undefined): JsonValue[] | undefined {
  switch (Array.isArray(type) ? "64-bit" : type) {
    case "string":
      return [""];
    case "boolean":
      return [false];
    case "array":
      return [[]];
    case "object":
      return [{}];
    case "integer":
    case "number":
      return [0];
    case "64-bit":
      return [0, "0"];
    default:
      return undefined;
  }
}

function oneLine(text: string): string {
  return text.trim().replace(/\s+/g, " ");
}
