import type { JsonObject } from "@bufbuild/protobuf";
import type { Plugin } from "../../../../lib/plugin/plugin.ts";
import type { ToolDeclaration } from "../../../../lib/plugin/tool-declaration.ts";
import { canonicalJson } from "../../../../lib/sign/canonical.ts";
import type { Codec, Tool } from "../../../../lib/tool/codec.ts";
import { programFailed, runProgram, throwIfAborted } from "../../tools/outcome.ts";
import { type DeviceTool, deviceTool } from "../../tools/tool.ts";
import { type Environment, programSpec, requireUnchanged } from "./program.ts";
import type { Turns } from "./turns.ts";

/** A tool of a plugin that is to be run. */
export interface PluginToolOptions {
  tool: Tool;
  declaration: ToolDeclaration;
  plugin: Plugin;
  env: Environment;
  /** The turns of the tool, where only one call of it may run at a time. */
  turns: Turns | undefined;
}

/**
 * The tool that runs a plugin's program: the input as one line of canonical JSON on its standard input, standard output as the
 * result, the exit code as the status. Faults: those of runProgram, START_FAILED among them, where nothing ran;
 * TOOL_FAILED{program,exit_code} where it ran and failed; NOT_AVAILABLE{tool,program} where the plugin is not what was accepted.
 */
export function pluginTool({ tool, declaration, plugin, env, turns }: PluginToolOptions): DeviceTool {
  const spec = programSpec(plugin, declaration, env);
  // A codec of a JSON Schema returns what it was given.
  return deviceTool(tool.spec, tool.codec as Codec<JsonObject>, async (input, context) => {
    const done = await turns?.take(context.signal);
    try {
      throwIfAborted(context);
      await requireUnchanged(tool.spec.name, plugin);
      const run = await runProgram(context, { ...spec, stdin: `${canonicalJson(input)}\n` });
      if (run.exitCode !== 0) throw programFailed(declaration.command.path, run);
      return { ...run };
    } finally {
      done?.();
    }
  });
}
