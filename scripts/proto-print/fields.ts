import { type DescExtension, type DescField, isFieldSet, type Registry, ScalarType } from "@bufbuild/protobuf";
import {
  Edition,
  FieldDescriptorProtoSchema,
  FieldOptionsSchema,
  FieldDescriptorProto_Label as Label,
} from "@bufbuild/protobuf/wkt";
import { indent } from "./indent.ts";
import { optionEntries } from "./options.ts";

/** The lines of one field or extension field: its declaration, with an option on each line of its own. */
export function fieldLines(field: DescField | DescExtension, registry: Registry): string[] {
  const declaration = `${label(field)}${typeText(field)} ${field.name} = ${field.number}`;
  const options = fieldOptions(field, registry);
  if (options.length === 0) return [`${declaration};`];
  const last = options.length - 1;
  return [`${declaration} [`, ...indent(options.map((option, i) => (i < last ? `${option},` : option))), "];"];
}

function fieldOptions(field: DescField | DescExtension, registry: Registry): string[] {
  const options = optionEntries(FieldOptionsSchema, field.proto.options, registry).map((o) => `${o.name} = ${o.value}`);
  if (!isFieldSet(field.proto, FieldDescriptorProtoSchema.field.defaultValue)) return options;
  const quoted = field.scalar === ScalarType.STRING || field.scalar === ScalarType.BYTES;
  const value = quoted ? JSON.stringify(field.proto.defaultValue) : field.proto.defaultValue;
  return [`default = ${value}`, ...options];
}

function label(field: DescField | DescExtension): string {
  if (field.fieldKind === "map" || field.oneof) return "";
  if (field.proto.label === Label.REPEATED) return "repeated ";
  if (field.proto.label === Label.REQUIRED) return "required ";
  const file = field.kind === "extension" ? field.file : field.parent.file;
  return file.edition === Edition.EDITION_PROTO2 || field.proto.proto3Optional ? "optional " : "";
}

function typeText(field: DescField | DescExtension): string {
  // A leading dot: a name that starts at the root cannot be taken for a nested one.
  const value = field.scalar ? scalarText(field.scalar) : `.${(field.message ?? field.enum)?.typeName}`;
  return field.fieldKind === "map" ? `map<${scalarText(field.mapKey)}, ${value}>` : value;
}

function scalarText(scalar: ScalarType): string {
  return ScalarType[scalar].toLowerCase();
}
