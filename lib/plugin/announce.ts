import { create } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { type AnnouncedTools, AnnouncedToolsSchema } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { Scope } from "../../gen/ts/reeve/options/v1/tool_pb.ts";
import { DIALECT } from "../tool/json-schema.ts";
import { describeAnnounced } from "../toolschema/announced.ts";
import type { AnnouncedTool } from "../toolschema/announced-tool.ts";
import { announcedName } from "../toolschema/names.ts";
import type { PluginManifest } from "./manifest.ts";
import type { PluginProblem } from "./problem.ts";
import type { ServerTool } from "./server-tools.ts";
import type { ToolDeclaration } from "./tool-declaration.ts";

/** What a plugin's tools are to callers, or why one of them cannot be a tool. */
export type Described =
  | { ok: true; tools: readonly AnnouncedTool[] }
  | { ok: false; problems: readonly PluginProblem[] };

/**
 * Tools of a plugin, and of its MCP servers, as a device announces them. What a plugin says of a tool, such as that it only reads, is a claim; that it
 * talks to other machines is assumed of one that no sandbox keeps from that. Pure.
 */
export function announcePlugin(
  { name }: PluginManifest,
  tools: readonly ToolDeclaration[],
  bridged: readonly ServerTool[] = [],
): AnnouncedTools {
  const described = tools.map((tool) => ({
    name: tool.name,
    description: tool.description,
    scope: Scope.ANY,
    readOnly: tool.readOnly,
    destructive: tool.destructive,
    openWorld: tool.permissionClass === "host" || tool.network,
    defaultTimeout: durationFromMs(tool.timeoutSeconds * 1000),
    inputSchema: JSON.stringify(tool.inputSchema),
    outputSchema: OUTPUT_SCHEMA,
  }));
  const all = [...described, ...bridged.map(announceBridged)];
  return create(AnnouncedToolsSchema, { name, definition: { case: "schemas", value: { tools: all } } });
}

/**
 * What an MCP server says of its tools, such as that they only read, is shown to people and decides nothing: only the plugin's own
 * declaration, which its owner accepted, does.
 */
function announceBridged({ name, description, inputSchema, readOnly, server }: ServerTool) {
  const { place, timeoutSeconds } = server;
  return {
    name,
    description,
    scope: Scope.ANY,
    readOnly,
    destructive: !readOnly,
    openWorld: place.kind === "address" || place.permissionClass === "host" || place.network,
    defaultTimeout: durationFromMs(timeoutSeconds * 1000),
    inputSchema: JSON.stringify(inputSchema),
    outputSchema: BRIDGED_OUTPUT_SCHEMA,
  };
}

/** Describes all tools of a plugin as the control plane does, so that a schema which it would refuse is found here. Pure. */
export function describePlugin(manifest: PluginManifest): Described {
  try {
    const { tools, unavailable } = describeAnnounced(announcePlugin(manifest, manifest.tools));
    if (unavailable.length === 0) return { ok: true, tools };
    const lines = new Map(manifest.tools.map((one) => [announcedName(manifest.name, one.name), one.schemaLine]));
    return { ok: false, problems: unavailable.map(({ tool, why }) => ({ line: lines.get(tool) ?? 1, message: why })) };
  } catch (error: unknown) {
    return { ok: false, problems: [{ line: 1, message: error instanceof Error ? error.message : String(error) }] };
  }
}

/** What every tool of a plugin returns: the fields that `exec` has, of a program that ended with exit code 0. */
const OUTPUT_SCHEMA = JSON.stringify({
  $schema: DIALECT,
  type: "object",
  properties: {
    program: { type: "string", description: "The file that was run." },
    stdout: { type: "string", description: "What it printed: the result." },
    stderr: { type: "string", description: "What it printed to standard error." },
    exitCode: { type: "integer", description: "Always 0: with any other the call has failed." },
    truncated: { type: "boolean", description: "Whether the middle of its output was left out." },
    durationMs: { type: "integer", description: "How long it ran, in milliseconds." },
  },
  additionalProperties: false,
});

/** What every tool of an MCP server returns: a result of the protocol (CallToolResult) that is no error. */
const BRIDGED_OUTPUT_SCHEMA = JSON.stringify({
  $schema: DIALECT,
  type: "object",
  properties: {
    content: {
      type: "array",
      items: { type: "object" },
      description: "What it returned: blocks of MCP, most often of type text.",
    },
    structuredContent: { type: "object", description: "The same for programs, where the tool has such a result." },
    truncated: { type: "boolean", description: "Whether the middle of a text was left out." },
  },
  additionalProperties: false,
});
