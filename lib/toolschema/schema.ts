import { type DescMessage, getOption, hasOption } from "@bufbuild/protobuf";
import type { Validator } from "@bufbuild/protovalidate";
import { message as messageRules } from "@bufbuild/protovalidate/gen/buf/validate/validate_pb.js";
import { DIALECT, type JsonSchema, withComment } from "../tool/json-schema.ts";
import { leadingComment } from "./comments.ts";
import { type FieldContext, type FieldOptionSet, fieldSchema } from "./fields.ts";
import { type JsonNames, withJsonNames } from "./names.ts";
import { oneofSentences } from "./oneofs.ts";
import { reachableMessages } from "./reach.ts";
import { requiredFields } from "./required.ts";
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
