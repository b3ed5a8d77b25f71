import { readFile } from "node:fs/promises";
import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { parseStrictJson } from "../json/strict-json.ts";
import { schemaAt } from "../tool/json-schema.ts";
import { LIMITS } from "../toolschema/limits.ts";
import type { PluginManifest } from "./manifest.ts";
import { readServerTools, type ServerTool, type ServerTools } from "./server-tools.ts";

/** What the MCP servers of one plugin listed, as they said it. */
export interface FoundPlugin {
  /** The digest of the plugin that they belong to. */
  digest: string;
  /** By the servers' names. */
  servers: ReadonlyMap<string, readonly JsonValue[]>;
}

/** What a device found, by the plugins' names. */
export type Found = ReadonlyMap<string, FoundPlugin>;

/** The file in a device's state folder that holds it. The device writes it, and its owner accepts what it holds. */
export const FOUND_FILE = "plugin-tools.json";

const JSON_LIMITS = { maxBytes: 64 * 1024 * 1024, maxDepth: 64, maxKeys: 500_000 };

/** Reads the file; nothing was found where there is none. Rejects with an Error where it cannot be read. */
export async function readFound(path: string): Promise<Found> {
  try {
    return parseFound(parseStrictJson(await readFile(path), JSON_LIMITS));
  } catch (error: unknown) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return new Map();
    const why = error instanceof Error ? error.message : String(error);
    throw new Error(`${path} cannot be read: ${why}`, { cause: error });
  }
}

/** The file's text. */
export function foundText(found: Found): string {
  const plugins = [...found].map(([name, { digest, servers }]) => [
    name,
    { digest, servers: Object.fromEntries(servers) },
  ]);
  return `${JSON.stringify({ version: 1, plugins: Object.fromEntries(plugins) as JsonObject }, undefined, 1)}\n`;
}

function parseFound(value: JsonValue): Found {
  const top = schemaAt(value);
  const plugins = schemaAt(top?.plugins);
  if (top?.version !== 1 || plugins === undefined) throw new Error("it is not what a device writes");
  return new Map(
    Object.entries(plugins).map(([name, one]) => {
      const { digest, servers } = schemaAt(one) ?? {};
      const lists = Object.entries(schemaAt(servers) ?? {});
      const found = lists.map(([server, list]) => [server, Array.isArray(list) ? list : []] as const);
      return [name, { digest: typeof digest === "string" ? digest : "", servers: new Map(found) }];
    }),
  );
}

/** The tools of a plugin's servers, as far as they were found: each name once, and not more than a device announces. Pure. */
export function serverTools(manifest: PluginManifest, servers: FoundPlugin["servers"]): ServerTools {
  const taken = new Set(manifest.tools.map(({ name }) => name));
  const tools: ServerTool[] = [];
  const unusable: { name: string; why: string }[] = [];
  for (const server of manifest.servers) {
    const read = readServerTools(server, servers.get(server.name) ?? []);
    unusable.push(...read.unusable);
    for (const tool of read.tools) {
      if (taken.has(tool.name)) unusable.push({ name: tool.name, why: "another tool of the plugin has this name" });
      else if (taken.size >= LIMITS.tools)
        unusable.push({ name: tool.name, why: `the plugin has ${LIMITS.tools} tools already` });
      else tools.push(tool);
      taken.add(tool.name);
    }
  }
  return { tools, unusable };
}
