import { checkStrictJson } from "../json/strict-json.ts";
import { isServiceName } from "../toolschema/names.ts";
import { isReeveVariable, isVariableName } from "./env-template.ts";
import { createJsonReader, type JsonPlace, type JsonReader } from "./json-reader.ts";
import type { PluginProblem } from "./problem.ts";
import { readServer, type ServerDeclaration } from "./server-declaration.ts";
import { readTool, type ToolDeclaration } from "./tool-declaration.ts";

/** The file that makes a folder a plugin. */
export const PLUGIN_FILE = "plugin.json";

/** What a plugin.json says. */
export interface PluginManifest {
  /** What the names of its tools begin with. */
  name: string;
  description: string;
  version: string;
  /** Variables of the agent's environment that its tools may be given. */
  envAllow: readonly string[];
  /** At least one, or a server. */
  tools: readonly ToolDeclaration[];
  /** Where more tools come from. */
  servers: readonly ServerDeclaration[];
}

/** The manifest, or everything that is wrong with it. */
export type ParsedManifest = { ok: true; manifest: PluginManifest } | { ok: false; problems: readonly PluginProblem[] };

const KEYS = ["$schema", "name", "description", "version", "env_allow", "tools", "mcp_servers"] as const;

/** A plugin is one thing: more than a few servers are more than one plugin. */
const MAX_SERVERS = 8;

const LIMITS = { maxBytes: 256 * 1024, maxKeys: 10_000 };

/** Reads a plugin.json. A declaration that is wrong in any way makes the whole of it wrong. Pure. */
export function parseManifest(bytes: Uint8Array): ParsedManifest {
  const violation = checkStrictJson(bytes, LIMITS);
  if (violation !== undefined) {
    const { line, field, message } = violation;
    return { ok: false, problems: [{ line, message: field === "" ? message : `${field}: ${message}` }] };
  }
  const reader = createJsonReader(Buffer.from(bytes).toString());
  const manifest = readManifest(reader);
  return reader.problems.length === 0 ? { ok: true, manifest } : { ok: false, problems: reader.problems };
}

function readManifest(reader: JsonReader): PluginManifest {
  const field = reader.fields(reader.root, "a plugin", KEYS);
  const envAllow = variables(reader, field("env_allow"));
  const allowed = new Set(envAllow);
  const tools = reader.items(field("tools"), "tools").map((place) => readTool(reader, place, allowed));
  const servers = reader.members(field("mcp_servers"), "mcp_servers").map((one) => readServer(reader, one, allowed));
  if (tools.length === 0 && servers.length === 0)
    reader.report(field("tools"), "tools must hold at least one tool, or mcp_servers a server");
  if (servers.length > MAX_SERVERS)
    reader.report(field("mcp_servers"), `mcp_servers may hold at most ${MAX_SERVERS} servers`);
  const seen = new Set<string>();
  for (const { name, line } of tools) {
    if (name !== "" && seen.has(name)) reader.problems.push({ line, message: `the tool "${name}" is declared twice` });
    seen.add(name);
  }
  return {
    name: pluginName(reader, field("name")),
    description: reader.text(field("description"), "description") ?? "",
    version: reader.text(field("version"), "version") ?? "",
    envAllow,
    tools,
    servers,
  };
}

function pluginName(reader: JsonReader, place: JsonPlace): string {
  const name = reader.text(place, "name") ?? "";
  if (!isServiceName(name))
    reader.report(place, "name must be of lower case letters, digits and -, begin with a letter, and have at most 32");
  return name;
}

function variables(reader: JsonReader, place: JsonPlace): string[] {
  return reader.items(place, "env_allow").flatMap((item) => {
    const name = reader.text(item, "env_allow") ?? "";
    if (isVariableName(name) && !isReeveVariable(name)) return [name];
    reader.report(item, `env_allow: "${name}" is no name of a variable that a plugin may be given`);
    return [];
  });
}
