import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import { expandEnv } from "../../../../lib/plugin/env-template.ts";
import { isUnchanged, type Plugin } from "../../../../lib/plugin/plugin.ts";
import type { PermissionClass, ToolDeclaration } from "../../../../lib/plugin/tool-declaration.ts";
import { canonicalJson } from "../../../../lib/sign/canonical.ts";
import type { Codec, Tool } from "../../../../lib/tool/codec.ts";
import type { Isolation } from "../../executor/sandbox/isolation.ts";
import { programFailed, runProgram, throwIfAborted } from "../../tools/outcome.ts";
import { type DeviceTool, deviceTool } from "../../tools/tool.ts";
import type { Turns } from "./turns.ts";

/** Variables of the agent's environment. */
export type Environment = Readonly<Record<string, string | undefined>>;

/** A tool of a plugin that is to be run. */
export interface PluginToolOptions {
  tool: Tool;
  declaration: ToolDeclaration;
  plugin: Plugin;
  env: Environment;
  /** The turns of the tool, where only one call of it may run at a time. */
  turns: Turns | undefined;
}

/** The level of the sandbox that a class stands for. */
export const ISOLATION: Readonly<Record<PermissionClass, Isolation>> = {
  read_only: "read_only",
  workspace: "workspace",
  host: "none",
};

/**
 * The tool that runs a plugin's program: the input as one line of canonical JSON on its standard input, standard output as the
 * result, the exit code as the status. Faults: those of runProgram, START_FAILED among them, where nothing ran;
 * TOOL_FAILED{program,exit_code} where it ran and failed; NOT_AVAILABLE{tool,program} where the plugin is not what was accepted.
 */
export function pluginTool({ tool, declaration, plugin, env, turns }: PluginToolOptions): DeviceTool {
  const { command, args, workDir } = declaration;
  const program = command.kind === "own" ? join(plugin.folder, command.path) : command.path;
  const spec = {
    argv: [program, ...args],
    cwd: workDir.startsWith("/") ? workDir : join(plugin.folder, workDir),
    toolEnv: environmentOf(declaration, env),
    isolation: ISOLATION[declaration.permissionClass],
    shows: [plugin.folder],
  };
  // A codec of a JSON Schema returns what it was given.
  return deviceTool(tool.spec, tool.codec as Codec<JsonObject>, async (input, context) => {
    const done = await turns?.take(context.signal);
    try {
      throwIfAborted(context);
      if (!(await isUnchanged(plugin))) throw changed(tool.spec.name, plugin);
      const run = await runProgram(context, { ...spec, stdin: `${canonicalJson(input)}\n` });
      if (run.exitCode !== 0) throw programFailed(command.path, run);
      return { ...run };
    } finally {
      done?.();
    }
  });
}

/** What Python would leave in the plugin's folder is a change of the plugin. */
const QUIET = { PYTHONDONTWRITEBYTECODE: "1" };

function environmentOf({ env: declared }: ToolDeclaration, env: Environment): Record<string, string> {
  return { ...QUIET, ...Object.fromEntries(declared.map(([name, parts]) => [name, expandEnv(parts, env)])) };
}

function changed(tool: string, { manifest, folder }: Plugin): Error {
  const message = `the plugin ${manifest.name} is not what was accepted any more, so nothing ran: ${acceptHint(folder)}`;
  return fault(ErrorReason.NOT_AVAILABLE, { tool, program: manifest.name }, { message });
}

/** What its owner does to have a plugin used. */
export function acceptHint(folder: string): string {
  return `look at it, then \`reeve plugin accept ${folder}\``;
}
