import { readFile } from "node:fs/promises";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { parseStrictJson } from "../json/strict-json.ts";
import { schemaAt } from "../tool/json-schema.ts";
import { announcedName } from "../toolschema/names.ts";
import type { Plugin } from "./plugin.ts";
import type { ServerTool } from "./server-tools.ts";

/** A plugin as its owner accepted it. */
export interface Acceptance {
  /** The digest of all its files. */
  digest: string;
  /** By their full names: the digests of its tools' input schemas, and of all that MCP servers say of theirs. */
  tools: ReadonlyMap<string, string>;
  /** When, in milliseconds since 1970. */
  timeMs: number;
}

/** What the owner accepted, by the plugins' names. */
export type Accepted = ReadonlyMap<string, Acceptance>;

/** The file in a device's state folder that holds it. */
export const ACCEPTED_FILE = "plugins.json";

/** Whether exactly this plugin was accepted: every file of it, and so every schema. */
export function isAccepted({ manifest, digest }: Plugin, accepted: Accepted): boolean {
  return accepted.get(manifest.name)?.digest === digest;
}

/** Whether a tool of one of the plugin's servers was accepted as it is. */
export function isToolAccepted(plugin: string, { name, digest }: ServerTool, accepted: Accepted): boolean {
  return accepted.get(plugin)?.tools.get(announcedName(plugin, name)) === digest;
}

/** The acceptance of a plugin as it is, with these tools of its servers. Pure. */
export function acceptanceOf(
  { manifest, digest, tools }: Plugin,
  timeMs: number,
  bridged: readonly ServerTool[] = [],
): Acceptance {
  const declared = tools.map(({ spec }) => [spec.name, spec.schemaDigest] as const);
  const listed = bridged.map((tool) => [announcedName(manifest.name, tool.name), tool.digest] as const);
  return { digest, timeMs, tools: new Map([...declared, ...listed]) };
}

/** Reads the file; nothing was accepted where there is none. Rejects with an Error where it cannot be read. */
export async function readAccepted(path: string): Promise<Accepted> {
  try {
    return parseAccepted(parseStrictJson(await readFile(path)));
  } catch (error: unknown) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return new Map();
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${path} cannot be read: ${why}`, { cause: error });
  }
}

/** The file's text, in one order. */
export function acceptedText(accepted: Accepted): string {
  const plugins: [string, JsonObject][] = [...accepted]
    .sort(([a], [b]) => (a < b ? -1 : 1))
    .map(([name, { digest, tools, timeMs }]) => [
      name,
      { digest, tools: Object.fromEntries(tools), accept_time: new Date(timeMs).toISOString() },
    ]);
  return `${JSON.stringify({ version: 1, plugins: Object.fromEntries(plugins) }, undefined, 2)}\n`;
}

function parseAccepted(value: JsonValue): Accepted {
  const top = schemaAt(value);
  const plugins = schemaAt(top?.plugins);
  if (top?.version !== 1 || plugins === undefined) throw new Error("it is not what `reeve plugin accept` writes");
  return new Map(Object.entries(plugins).map(([name, one]) => [name, parseOne(one)]));
}

function parseOne(value: JsonValue): Acceptance {
  const { digest, tools, accept_time: time } = schemaAt(value) ?? {};
  const timeMs = typeof time === "string" ? Date.parse(time) : Number.NaN;
  if (typeof digest !== "string" || !Number.isFinite(timeMs))
    throw new Error("a plugin in it has no digest or no time");
  const schemas = Object.entries(schemaAt(tools) ?? {});
  return {
    digest,
    timeMs,
    tools: new Map(schemas.flatMap(([name, one]) => (typeof one === "string" ? [[name, one]] : []))),
  };
}
