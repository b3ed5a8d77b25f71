import type { JsonSchema } from "../../lib/tool/json-schema.ts";
import { propertyOf, type Section, type Setting, type Settings } from "./read-settings.ts";

/** The JSON Schema of the configuration file, with the names of the .proto file; secrets have no place in it. */
export function settingsSchema({ root, schema, sections }: Settings): JsonSchema {
  const [top, ...rest] = sections;
  const own = top === undefined ? {} : propertiesOf(top);
  const held = rest.map((section) => {
    const field = root.fields.find(({ name }) => name === section.name);
    const described = field === undefined ? {} : propertyOf(schema, field);
    return [section.name, { ...described, properties: propertiesOf(section) }] as const;
  });
  return { ...schema, properties: { ...own, ...Object.fromEntries(held) } };
}

function propertiesOf({ settings }: Section): Record<string, JsonSchema> {
  const shown = settings.filter(({ option }) => !option.secret);
  return Object.fromEntries(shown.map((setting) => [setting.field.name, valueSchema(setting)]));
}

function valueSchema({ field, option, kind, schema, doc }: Setting): JsonSchema {
  const isDuration = kind === "duration" && field.fieldKind === "scalar";
  return {
    ...schema,
    description: `${doc} Environment: ${option.env}.`,
    ...(isDuration ? { pattern: "^\\d+(ms|s|m|h|d)$" } : {}),
    ...(option.defaultValue === "" ? {} : { default: written(option.defaultValue, schema) }),
  };
}

function written(text: string, { type }: JsonSchema): string | number | boolean {
  if (type === "integer") return Number(text);
  return type === "boolean" ? text === "true" : text;
}
