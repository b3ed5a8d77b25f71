import { create, type DescMessage } from "@bufbuild/protobuf";
import type { Validator } from "@bufbuild/protovalidate";

/**
 * The ProtoJSON names of the fields that a message cannot go without: those that an empty message violates. A rule
 * such as `min_items: 1` counts, not only `required`. Throws where a rule does not compile.
 */
export function requiredFields(message: DescMessage, validator: Validator): string[] {
  const result = validator.validate(message, create(message));
  if (result.kind === "error")
    throw new Error(`the rules of ${message.typeName} cannot be used: ${result.error.message}`);
  if (result.kind === "valid") return [];
  const broken = new Set(result.violations.map(({ field: [first] }) => first));
  return message.fields.filter((field) => broken.has(field)).map((field) => field.jsonName);
}
