import { join, resolve } from "node:path";
import { createYamlReader, isAbsent, type YamlNode, type YamlProblem, type YamlReader } from "../yaml/yaml-reader.ts";
import type { Environment } from "./config.ts";
import { type ConfigKey, expectedOf, parseKey } from "./config-key.ts";

/** A setting as a configuration file says it. */
export interface FileValue {
  /** As the environment variable would say it. */
  text: string;
  /** The line it stands on, from 1. */
  line: number;
}

/** A configuration file that was read. */
export interface ConfigFile {
  /** By the settings' environment variables. */
  values: ReadonlyMap<string, FileValue>;
  /** Everything that is wrong with it. Its values are not to be used where there is any. */
  problems: readonly YamlProblem[];
}

/** Where a configuration file is, for the paths in it. */
export interface FilePlace {
  /** The file's folder, which relative paths start from. Absolute. */
  folder: string;
  /** What "~" stands for. Undefined: nothing does. */
  home: string | undefined;
}

/**
 * Reads a configuration file: YAML, whose fields stand where the settings say. An unknown field, a value of another kind and a
 * secret are problems, each with its line. Pure.
 */
export function parseConfigFile(text: string, place: FilePlace, keys: Iterable<ConfigKey>): ConfigFile {
  const reader = createYamlReader(text);
  const values = new Map<string, FileValue>();
  const sections = Map.groupBy(
    [...keys].filter(({ at }) => at !== undefined),
    ({ at = "" }) => at.slice(0, Math.max(at.indexOf("."), 0)),
  );
  const read = (fields: ReadonlyMap<string, YamlNode>, section: string): void => {
    for (const key of sections.get(section) ?? []) {
      const node = fields.get(nameIn(section, key));
      if (isAbsent(node)) continue;
      const value = textOf(reader, node, key, place);
      if (value !== undefined) values.set(key.name, { text: value, line: reader.lineOf(node) });
    }
  };
  const namesIn = (section: string) => (sections.get(section) ?? []).map((key) => nameIn(section, key));
  const named = [...sections.keys()].filter((name) => name !== "");
  const top = reader.fields(reader.root, "the file", [...namesIn(""), ...named]);
  read(top, "");
  for (const section of named) read(reader.fields(top.get(section), section, namesIn(section)), section);
  return { values, problems: reader.problems.toSorted((a, b) => a.line - b.line) };
}

/** An environment, with what the file says where a variable is unset or empty. */
export function withFileValues(env: Environment, values: ConfigFile["values"]): Environment {
  const more = [...values].filter(([name]) => !env[name]).map(([name, { text }]) => [name, text]);
  return { ...env, ...Object.fromEntries(more) };
}

function nameIn(section: string, { at = "" }: ConfigKey): string {
  return section === "" ? at : at.slice(section.length + 1);
}

function textOf(reader: YamlReader, node: YamlNode, key: ConfigKey, place: FilePlace): string | undefined {
  const { at = "" } = key;
  if (key.secret) {
    reader.report(node, `${at} is a secret, and a file is no place for one: set ${key.name} in the environment`);
    return undefined;
  }
  if ("list" in key && key.list !== undefined) return listText(reader, node, key, place);
  if ("map" in key && key.map !== undefined) return mapText(reader, node, key, place);
  const text = scalarText(reader, node, key);
  if (text === undefined) return undefined;
  const full = key.type === "path" ? fullPath(text, place) : text;
  if (parseKey(key, full) !== undefined) return full;
  reader.report(node, `${at} must be ${expectedOf(key)}, not "${text}"`);
  return undefined;
}

function scalarText(reader: YamlReader, node: YamlNode, key: ConfigKey): string | undefined {
  const value = reader.data(node);
  const kind = { int: "number", bool: "boolean" }[key.type as "int" | "bool"] ?? "string";
  if (typeof value !== "object" && typeof value === kind && value !== "") return String(value);
  reader.report(
    node,
    `${key.at} must be ${expectedOf(key)}${kind === "string" ? ", as a text that is not empty" : ""}`,
  );
  return undefined;
}

interface ListKey {
  at?: string;
  list?: string;
  map?: string;
  entries?: "path";
}

function listText(reader: YamlReader, node: YamlNode, key: ListKey, place: FilePlace): string {
  const { at = "", list = "", entries } = key;
  const texts = reader.items(node, at).map((item) => {
    const text = reader.text(item, `an entry of ${at}`) ?? "";
    if (text.trim() === "" || text.includes(list))
      reader.report(item, `an entry of ${at} must be a text without "${list}"`);
    return entries === "path" ? fullPath(text, place) : text;
  });
  // Not empty, which would stand for unset: the list exists, and has no entry.
  return texts.length === 0 ? list : texts.join(list);
}

function mapText(reader: YamlReader, node: YamlNode, key: ListKey, place: FilePlace): string {
  const { at = "", map = "", entries } = key;
  const texts = reader.texts(node, at).map(([name, value]) => {
    if (name === "" || `${name}${value}`.includes(map) || name.includes("="))
      reader.report(node, `an entry of ${at} must be a key without "=" and a text, both without "${map}"`);
    return `${name}=${entries === "path" ? fullPath(value, place) : value}`;
  });
  return texts.length === 0 ? map : texts.join(map);
}

function fullPath(text: string, { folder, home }: FilePlace): string {
  if (home !== undefined && (text === "~" || text.startsWith("~/"))) return join(home, text.slice(1));
  return resolve(folder, text);
}
