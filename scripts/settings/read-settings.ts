import {
  createRegistry,
  type DescExtension,
  type DescField,
  type DescFile,
  type DescMessage,
  getOption,
  hasOption,
} from "@bufbuild/protobuf";
import { createValidator } from "@bufbuild/protovalidate";
import type { SettingOptions } from "../../gen/ts/reeve/options/v1/setting_pb.ts";
import type { JsonSchema } from "../../lib/tool/json-schema.ts";
import { leadingComment } from "../../lib/toolschema/comments.ts";
import { messageSchema } from "../../lib/toolschema/schema.ts";

/** One setting: a field of the configuration file. */
export interface Setting {
  field: DescField;
  option: SettingOptions;
  /** What its text stands for: "path", "url", "duration", or "unspecified" where the field's type says. */
  kind: string;
  /** What it means, in one paragraph. */
  doc: string;
  /** The JSON Schema of its value. */
  schema: JsonSchema;
}

/** The settings of one message of the file. */
export interface Section {
  /** Its name in the file; empty for the file's own fields. */
  name: string;
  message: DescMessage;
  settings: Setting[];
}

/** The file's shape. */
export interface Settings {
  root: DescMessage;
  schema: JsonSchema;
  sections: Section[];
}

const ROOT = "reeve.config.v1.Config";

/** The settings that the files define, undefined where they define none, and what is not whole: a sentence for each field. */
export function readSettings(
  files: Iterable<DescFile>,
  allFiles: Iterable<DescFile>,
): { settings: Settings | undefined; problems: string[] } {
  const root = [...files].flatMap((file) => file.messages).find((message) => message.typeName === ROOT);
  const registry = createRegistry(...allFiles);
  const option = registry.getExtension("reeve.options.v1.setting");
  if (root === undefined || option === undefined) return { settings: undefined, problems: [] };
  const validator = createValidator({ registry });
  const schema = messageSchema(root, { direction: "input", names: new Map(), validator });
  const held = root.fields.filter((field) => field.fieldKind === "message");
  const sections = [
    sectionOf("", root, schema, option),
    ...held.map((field) => sectionOf(field.name, field.message, propertyOf(schema, field), option)),
  ];
  return { settings: { root, schema, sections }, problems: [...sections.flatMap(problemsOf), ...repeated(sections)] };
}

/** The schema of a field within that of its message. */
export function propertyOf(schema: JsonSchema, field: DescField): JsonSchema {
  return (schema.properties as Record<string, JsonSchema>)[field.jsonName] ?? {};
}

function sectionOf(name: string, message: DescMessage, schema: JsonSchema, extension: DescExtension): Section {
  // By the option's own descriptor: gen is being written.
  const kinds = extension.message?.field.kind?.enum?.value;
  const settings = message.fields
    .filter((field) => hasOption(field, extension))
    .map((field) => {
      const option = getOption(field, extension) as SettingOptions;
      const kind = (kinds?.[option.kind]?.name ?? "").replace("SETTING_KIND_", "").toLowerCase();
      return { field, option, kind, doc: leadingComment(field) ?? "", schema: propertyOf(schema, field) };
    });
  return { name, message, settings };
}

function problemsOf({ name, message, settings }: Section): string[] {
  const plain = message.fields.filter(
    (field) => !settings.some((setting) => setting.field === field) && (name !== "" || field.fieldKind !== "message"),
  );
  return [
    ...plain.map((field) => `${field.toString()} is no setting`),
    ...settings.flatMap(({ field, option, doc }) => [
      ...(/^[A-Z][A-Z0-9_]+$/.test(option.env) ? [] : [`${field.toString()} names no environment variable`]),
      ...(doc === "" ? [`${field.toString()} has no comment`] : []),
      ...(isMany(field) && option.separator === "" ? [`${field.toString()} has no separator`] : []),
      ...(isMany(field) || field.presence !== 2 ? [] : [`${field.toString()} is not optional`]),
    ]),
  ];
}

function isMany(field: DescField): boolean {
  return field.fieldKind === "list" || field.fieldKind === "map";
}

function repeated(sections: readonly Section[]): string[] {
  const all = sections.flatMap(({ settings }) => settings);
  return [...Map.groupBy(all, ({ option }) => option.env)]
    .filter(([, group]) => group.length > 1)
    .map(([env, group]) => `${group.map(({ field }) => field.toString()).join(" and ")}: ${env} is used twice`);
}
