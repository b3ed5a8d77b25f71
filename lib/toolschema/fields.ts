import {
  type DescEnum,
  type DescExtension,
  type DescField,
  type DescMessage,
  getOption,
  hasOption,
  ScalarType,
} from "@bufbuild/protobuf";
import type { FieldRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import type { JsonSchema } from "../tool/json-schema.ts";
import { KEYWORDS } from "../tool/keywords.ts";
import { leadingComment } from "./comments.ts";
import { type JsonNames, withJsonNames } from "./names.ts";
import { allowedNumbers, notEmpty, rulesOf, withRules } from "./rules.ts";
import { mapKeySchema, scalarSchema } from "./scalars.ts";

/** What the schema of a field depends on besides the field. */
export interface FieldContext {
  /** True for what callers send: rules apply and UNSPECIFIED is no choice. False for what tools return. */
  input: boolean;
  /** The names that descriptions use. */
  names: JsonNames;
  /** The options that mark fields. */
  options: FieldOptionSet;
  /** The schema of a message that a field holds: in place, or a reference. */
  held(message: DescMessage): JsonSchema;
  /** Is notified of each text that becomes part of a schema, before it is built further. May throw. */
  emit(text: string): void;
}

/** The options that mark fields, where the descriptors have them. */
export interface FieldOptionSet {
  /** reeve.options.v1.secret. */
  secret: DescExtension | undefined;
  /** reeve.options.v1.command. */
  command: DescExtension | undefined;
  /** reeve.options.v1.deadline. */
  deadline: DescExtension | undefined;
}

/** The type of one value: of a singular field, of a list's items or of a map's values. */
interface ValueType {
  scalar?: ScalarType | undefined;
  enum?: DescEnum | undefined;
  message?: DescMessage | undefined;
}

/** The schema of a field, with its description. */
export function fieldSchema(field: DescField, context: FieldContext): JsonSchema {
  const rules = context.input ? rulesOf(field) : undefined;
  context.emit(field.jsonName);
  const shaped = shape(field, rules, context);
  const schema = rules?.required && !hasPresence(field) ? notEmpty(shaped, field) : shaped;
  const description = describe(field, rules, context);
  return {
    ...(description ? { ...schema, description } : schema),
    ...marks(field, context.options),
  };
}

function shape(field: DescField, rules: FieldRules | undefined, context: FieldContext): JsonSchema {
  switch (field.fieldKind) {
    case "list": {
      const items = rules?.type.case === "repeated" ? rules.type.value.items : undefined;
      return withRules({ type: "array", items: valueSchema(field, items, context) }, rules);
    }
    case "map": {
      const { keys, values } = rules?.type.case === "map" ? rules.type.value : {};
      const names = withRules(mapKeySchema(field.mapKey), field.mapKey === ScalarType.STRING ? keys : undefined);
      const schema = {
        type: "object",
        propertyNames: names,
        additionalProperties: valueSchema(field, values, context),
      };
      return withRules(schema, rules);
    }
    case "scalar":
    case "enum":
    case "message":
      return valueSchema(field, rules, context);
  }
}

function valueSchema(type: ValueType, rules: FieldRules | undefined, context: FieldContext): JsonSchema {
  if (type.message) return withRules(context.held(type.message), rules);
  if (type.enum) {
    const names = choices(type.enum, rules, context).map((value) => value.name);
    for (const name of names) context.emit(name);
    return withRules({ type: "string", enum: names }, rules);
  }
  return withRules(scalarSchema(type.scalar ?? ScalarType.STRING), rules);
}

function choices(desc: DescEnum, rules: FieldRules | undefined, context: FieldContext): DescEnum["values"] {
  if (!context.input) return desc.values;
  const all = desc.values.map((value) => value.number);
  const allowed = new Set(allowedNumbers(all, rules?.type.case === "enum" ? rules.type.value : undefined));
  return desc.values.filter((value) => allowed.has(value.number) && !isUnspecified(value));
}

function isUnspecified(value: { number: number; name: string }): boolean {
  return value.number === 0 && value.name.endsWith("_UNSPECIFIED");
}

function describe(field: DescField, rules: FieldRules | undefined, context: FieldContext): string {
  const values = field.enum ? choices(field.enum, elementRules(rules), context) : [];
  const lines = [leadingComment(field) ?? ""];
  context.emit(lines[0] ?? "");
  for (const value of values) {
    const line = `${value.name}: ${leadingComment(value) ?? ""}`.replace(/: $/, "");
    context.emit(line);
    lines.push(line);
  }
  return withJsonNames(lines.filter(Boolean).join("\n"), context.names);
}

function elementRules(rules: FieldRules | undefined): FieldRules | undefined {
  if (rules?.type.case === "repeated") return rules.type.value.items;
  if (rules?.type.case === "map") return rules.type.value.values;
  return rules;
}

function hasPresence(field: DescField): boolean {
  return field.fieldKind === "message" || field.oneof !== undefined || field.proto.proto3Optional;
}

function marks(field: DescField, { secret, command, deadline }: FieldOptionSet): JsonSchema {
  const part = partOf(field, command);
  return {
    ...(isSet(field, secret) ? { writeOnly: true } : {}),
    ...(part === undefined ? {} : { [KEYWORDS.command]: part }),
    ...(isSet(field, deadline) ? { [KEYWORDS.deadline]: true } : {}),
  };
}

function isSet(field: DescField, option: DescExtension | undefined): boolean {
  return option !== undefined && hasOption(field, option) && getOption(field, option) === true;
}

/** The name of the enum's value in lower case: COMMAND_PART_ARGV is "argv". */
function partOf(field: DescField, command: DescExtension | undefined): string | undefined {
  if (command === undefined || !hasOption(field, command)) return undefined;
  const value = command.enum?.value[getOption(field, command) as number];
  return value === undefined || value.number === 0 ? undefined : value.name.replace("COMMAND_PART_", "").toLowerCase();
}
