import { isFieldSet } from "@bufbuild/protobuf";
import {
  type BytesRules,
  type StringRules,
  StringRulesSchema,
} from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { type JsonSchema, withAll, withComment } from "../tool/json-schema.ts";

/** The most bytes that UTF-8 needs for one code point, which is what JSON Schema counts. */
const BYTES_PER_CODE_POINT = 4;

/** The formats of JSON Schema that mean what the rule of that name means. */
const FORMATS: Readonly<Record<string, JsonSchema>> = {
  email: { format: "email" },
  hostname: { format: "hostname" },
  ip: { anyOf: [{ format: "ipv4" }, { format: "ipv6" }] },
  ipv4: { format: "ipv4" },
  ipv6: { format: "ipv6" },
  uri: { format: "uri" },
  uriRef: { format: "uri-reference" },
  uuid: { format: "uuid" },
};

/**
 * The keywords for string rules. Limits in bytes become limits in code points, which are looser; a format or pattern
 * that JSON Schema lacks becomes a `$comment`.
 */
export function stringRules(schema: JsonSchema, rules: StringRules): JsonSchema {
  const more: JsonSchema[] = [];
  if (rules.prefix) more.push({ pattern: `^${literal(rules.prefix)}` });
  if (rules.suffix) more.push({ pattern: `${literal(rules.suffix)}$` });
  if (rules.contains) more.push({ pattern: literal(rules.contains) });
  if (rules.notContains) more.push({ not: { pattern: literal(rules.notContains) } });
  if (rules.in.length > 0) more.push({ enum: rules.in });
  if (rules.notIn.length > 0) more.push({ not: { enum: rules.notIn } });
  if (isFieldSet(rules, StringRulesSchema.field.const)) more.push({ const: rules.const });
  if (rules.example.length > 0) more.push({ examples: rules.example });
  return withFormat(withPattern(withAll({ ...schema, ...lengths(rules) }, more), rules.pattern), rules.wellKnown);
}

/** The keywords for bytes rules: limits in bytes become limits on the base64 text. */
export function bytesRules(schema: JsonSchema, rules: BytesRules): JsonSchema {
  const least = Number(rules.len || rules.minLen);
  const most = Number(rules.len || rules.maxLen);
  return {
    ...schema,
    ...(least > 0 ? { minLength: Math.ceil((least * 4) / 3) } : {}),
    ...(most > 0 ? { maxLength: Math.ceil(most / 3) * 4 } : {}),
  };
}

function lengths(rules: StringRules): JsonSchema {
  const least = Math.max(
    Number(rules.len || rules.minLen),
    Math.ceil(Number(rules.lenBytes || rules.minBytes) / BYTES_PER_CODE_POINT),
  );
  const limits = [rules.len || rules.maxLen, rules.lenBytes || rules.maxBytes].filter((limit) => limit > 0n);
  return {
    ...(least > 0 ? { minLength: least } : {}),
    ...(limits.length > 0 ? { maxLength: Math.min(...limits.map(Number)) } : {}),
  };
}

function withPattern(schema: JsonSchema, pattern: string): JsonSchema {
  if (!pattern) return schema;
  return isEcmaScript(pattern) ? withAll(schema, [{ pattern }]) : withComment(schema, `RE2 pattern ${pattern}`);
}

// Rules are written for RE2, whose flags and classes such as (?i) and \z JSON Schema does not have.
function isEcmaScript(pattern: string): boolean {
  try {
    new RegExp(pattern, "u");
    return !/\(\?[imsU-]|\\[zAQ]/.test(pattern);
  } catch {
    return false;
  }
}

function withFormat(schema: JsonSchema, rule: StringRules["wellKnown"]): JsonSchema {
  if (!rule.case || !rule.value) return schema;
  const format = FORMATS[rule.case];
  return format ? withAll(schema, [format]) : withComment(schema, `format ${rule.case}`);
}

function literal(text: string): string {
  return text.replace(/[\\^$.*+?()[\]{}|]/g, "\\$&");
}
