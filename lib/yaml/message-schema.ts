import { type DescEnum, type DescField, type DescMessage, getOption, ScalarType } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import { file_alias } from "../../gen/ts/reeve/options/v1/file_field_pb.ts";

/** A JSON Schema, as far as one is made here. */
export type FileSchema = { readonly [keyword: string]: unknown };

/** The JSON Schema of a YAML file in the shape of a message, as `readMessage` reads it, for editors. The rules are not in it. */
export function messageSchema(desc: DescMessage): FileSchema {
  const properties = desc.fields.flatMap((field) =>
    [field.name, ...getOption(field, file_alias)].map((key): [string, FileSchema] => [key, fieldSchema(field)]),
  );
  return { type: "object", properties: Object.fromEntries(properties), additionalProperties: false };
}

function fieldSchema(field: DescField): FileSchema {
  if (field.fieldKind === "list") return { type: "array", items: { type: "string" } };
  if (field.message?.typeName === DurationSchema.typeName) return { type: "string", pattern: "^[0-9]+(ms|s|m|h|d)$" };
  if (field.message) return messageSchema(field.message);
  if (field.enum) return { enum: enumNames(field.enum) };
  switch (field.scalar) {
    case ScalarType.STRING:
      return { type: "string" };
    case ScalarType.BOOL:
      return { type: "boolean" };
    default:
      return { type: "integer", minimum: 0 };
  }
}

/** The names of an enum's values in a file: in small letters, without what all begin with. */
export function enumNames(desc: DescEnum): string[] {
  return desc.values
    .filter(({ number }) => number !== 0)
    .map(({ name }) => name.slice(desc.sharedPrefix?.length ?? 0).toLowerCase());
}
