import { type DescMessage, getExtension, hasExtension, type Message, type Registry } from "@bufbuild/protobuf";
import { type ReflectMessage, reflect } from "@bufbuild/protobuf/reflect";
import { toText } from "@bufbuild/protobuf/txtpb";

/** One option as a .proto file writes it: `name = value`. */
export interface OptionEntry {
  /** The option's name; a custom option is in parentheses. */
  name: string;
  /** The value in the protobuf text format. */
  value: string;
}

/** What an option's value may be, besides a scalar. */
interface ValueType {
  message?: DescMessage | undefined;
  enum?: { value: Record<number, { name: string }> } | undefined;
}

/**
 * The options that an options message sets, built-in ones first.
 * Custom options are found through the registry; one that it does not know is left out.
 */
export function optionEntries<Desc extends DescMessage>(
  schema: Desc,
  options: Message | undefined,
  registry: Registry,
): OptionEntry[] {
  if (options === undefined) return [];
  return [...builtIn(reflect(schema, options as never), registry), ...custom(schema, options, registry)];
}

function builtIn(options: ReflectMessage, registry: Registry): OptionEntry[] {
  return options.fields
    .filter((field) => options.isSet(field) && (field.fieldKind === "scalar" || field.fieldKind === "enum"))
    .map((field) => ({ name: field.name, value: valueText(field, options.get(field), registry) }));
}

function custom(schema: DescMessage, options: Message, registry: Registry): OptionEntry[] {
  const entries: OptionEntry[] = [];
  for (const type of registry) {
    if (type.kind !== "extension" || type.extendee.typeName !== schema.typeName) continue;
    if (!hasExtension(options, type)) continue;
    for (const value of [getExtension(options, type)].flat()) {
      entries.push({ name: `(${type.typeName})`, value: valueText(type, value, registry) });
    }
  }
  return entries;
}

function valueText(type: ValueType, value: unknown, registry: Registry): string {
  if (type.message) {
    const lines = toText(type.message, value as Message, { registry })
      .trim()
      .split("\n");
    return `{ ${lines.map((line) => line.trim()).join(" ")} }`;
  }
  if (type.enum) return type.enum.value[value as number]?.name ?? String(value);
  return typeof value === "string" ? JSON.stringify(value) : String(value);
}
