import { create, type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import type { Validator } from "@bufbuild/protovalidate";
import { message as messageRules, oneof as oneofRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { DIALECT, type JsonSchema, withComment } from "../tool/json-schema.ts";
import { leadingComment } from "./comments.ts";
import { type FieldContext, type FieldOptionSet, fieldSchema } from "./fields.ts";
import { type JsonNames, withJsonNames } from "./names.ts";
import { reachableMessages } from "./reach.ts";
import { wellKnownSchema } from "./well-known.ts";

const NO_OPTIONS: FieldOptionSet = { secret: undefined, command: undefined, deadline: undefined };

/** What a schema depends on besides the message. */
export interface SchemaOptions {
  /** Whether callers send the message or tools return it. Rules hold for input only. */
  direction: "input" | "output";
  /** The names that descriptions use. */
  names: JsonNames;
  /** Knows which fields are required. */
  validator: Validator;
  /** The options that mark fields. Default none. */
  options?: FieldOptionSet;
  /** Is notified of each text that becomes part of the schema, as it is built. What it throws ends the build. */
  emit?: ((text: string) => void) | undefined;
}

/**
 * The JSON Schema of a message in ProtoJSON. Fields have their ProtoJSON names (maxBytes), and nothing else is
 * allowed. A message that is held in more than one place, or that holds itself, stands in `$defs`.
 *
 * The root has no `oneOf`, `anyOf` or `allOf`, which Anthropic's API refuses there. Throws where a rule does not
 * compile.
 */
export function messageSchema(root: DescMessage, options: SchemaOptions): JsonSchema {
  const uses = reachableMessages(root);
  const defs = new Map<DescMessage, JsonSchema>();
  const context: FieldContext = {
    input: options.direction === "input",
    names: options.names,
    options: options.options ?? NO_OPTIONS,
    emit: options.emit ?? (() => undefined),
    held: (message) => {
      const wellKnown = wellKnownSchema(message.typeName);
      if (wellKnown) return wellKnown;
      if (message === root) return { $ref: "#" };
      if ((uses.get(message) ?? 0) < 2) return objectSchema(message, context, options);
      if (!defs.has(message)) {
        // Set before it is built: a message that holds itself must find it.
        defs.set(message, {});
        defs.set(message, objectSchema(message, context, options));
      }
      return { $ref: `#/$defs/${message.typeName}` };
    },
  };
  const schema = { $schema: DIALECT, ...objectSchema(root, context, options) };
  if (defs.size === 0) return schema;
  return { ...schema, $defs: Object.fromEntries([...defs].map(([message, def]) => [message.typeName, def])) };
}

function objectSchema(message: DescMessage, context: FieldContext, options: SchemaOptions): JsonSchema {
  const description = [leadingComment(message), ...oneofSentences(message)].filter(Boolean).join(" ");
  context.emit(description);
  const required = context.input ? requiredFields(message, options.validator) : [];
  const schema: JsonSchema = {
    type: "object",
    ...(description ? { description: withJsonNames(description, context.names) } : {}),
    properties: Object.fromEntries(message.fields.map((field) => [field.jsonName, fieldSchema(field, context)])),
    ...(required.length > 0 ? { required } : {}),
    additionalProperties: false,
  };
  return context.input ? messageCel(message).reduce(withComment, schema) : schema;
}

function messageCel(message: DescMessage): string[] {
  if (!hasOption(message, messageRules)) return [];
  const rules = getOption(message, messageRules);
  return [...rules.celExpression, ...rules.cel.map((rule) => `${rule.id}: ${rule.expression}`)];
}

/**
 * The ProtoJSON names of the fields that a message cannot go without: those that an empty message violates. A rule
 * such as `min_items: 1` counts, not only `required`. Throws where a rule does not compile.
 */
function requiredFields(message: DescMessage, validator: Validator): string[] {
  const result = validator.validate(message, create(message));
  if (result.kind === "error")
    throw new Error(`the rules of ${message.typeName} cannot be used: ${result.error.message}`);
  if (result.kind === "valid") return [];
  const broken = new Set(result.violations.map(({ field: [first] }) => first));
  return message.fields.filter((field) => broken.has(field)).map((field) => field.jsonName);
}

/**
 * A sentence for each oneof of a message, and for each protovalidate oneof rule. A sentence and no keyword, because
 * providers refuse `oneOf` and its like at the root, and a model reads sentences.
 */
function oneofSentences(message: DescMessage): string[] {
  const declared = message.oneofs.map((oneof) =>
    sentence(
      oneof.fields.map((field) => field.jsonName),
      hasOption(oneof, oneofRules) && getOption(oneof, oneofRules).required,
    ),
  );
  if (!hasOption(message, messageRules)) return declared;
  const { oneof: rules } = getOption(message, messageRules);
  const jsonNames = new Map(message.fields.map((field) => [field.name, field.jsonName]));
  const ruled = rules.map(({ fields, required }) =>
    sentence(
      fields.map((name) => jsonNames.get(name) ?? name),
      required,
    ),
  );
  return [...declared, ...ruled];
}

function sentence(names: readonly string[], required: boolean): string {
  return `Set ${required ? "exactly" : "at most"} one of ${names.join(", ")}.`;
}
