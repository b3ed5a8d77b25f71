import type { JsonObject } from "@bufbuild/protobuf";
import type { ServerDeclaration } from "../../lib/plugin/server-declaration.ts";
import type { ServerTool } from "../../lib/plugin/server-tools.ts";
import { announcedName } from "../../lib/toolschema/names.ts";
import { visibleLine } from "../print/escape.ts";
import { commandLine, levelText } from "./describe-program.ts";

/** An MCP server of a plugin for a person: what it is, and what its program may do. */
export function serverLines({ name, place, timeoutSeconds, concurrencySafe }: ServerDeclaration): string[] {
  const turns = concurrencySafe ? "" : ", one at a time";
  const times = `${timeoutSeconds} s a call at most${turns}`;
  if (place.kind === "address")
    return [`  MCP server ${name}: what it lists becomes tools`, `    at      ${place.url}; ${times}`];
  return [
    `  MCP server ${name}: what it lists becomes tools`,
    `    runs    ${commandLine(place)}`,
    `    level   ${levelText(place)}; ${times}`,
  ];
}

/** Tools of MCP servers for a person, in the servers' own words. */
export function serverToolsText(plugin: string, tools: readonly ServerTool[]): string {
  return tools
    .flatMap(({ name, server, description, inputSchema, claims, readOnly }) => [
      `  ${announcedName(plugin, name)}, of ${server.name}: ${description}`,
      `    input   ${JSON.stringify(inputSchema)}`,
      `    claims  ${claims.join(", ") || "nothing"}${readOnly ? "; the plugin says that it only reads" : ""}`,
    ])
    .map((line) => `${visibleLine(line)}\n`)
    .join("");
}

/** The same for a program. */
export function serverToolsJson(plugin: string, tools: readonly ServerTool[]): JsonObject[] {
  return tools.map(({ name, remoteName, server, description, inputSchema, claims, readOnly, digest }) => ({
    name: announcedName(plugin, name),
    server: server.name,
    remoteName,
    description,
    inputSchema,
    claims: [...claims],
    readOnly,
    digest,
  }));
}
