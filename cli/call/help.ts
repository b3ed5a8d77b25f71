import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Command } from "commander";
import { type Tool, ToolSchema } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { toolByName } from "../../lib/toolschema/catalog-file.ts";
import type { CommandContext } from "../command-context.ts";
import { withSession } from "../connection-options.ts";
import { UsageError } from "../errors/usage-error.ts";
import { exitCodeHelp } from "../exit-codes.ts";
import { styleFor } from "../print/style.ts";
import type { TargetFlags } from "../target.ts";
import { findTool } from "./find-tool.ts";
import { isFanOut, type RunFlags, splitWords } from "./run-options.ts";
import { toolHelp } from "./tool-help.ts";

/** What the help of `reeve call` says besides its options. */
export const callHelpText = `
Flags of a tool, from its input schema; \`reeve call DEVICE TOOL --help\` lists them, \`reeve tool list\` the tools:
  --timeout-ms 5000             timeoutMs in the schema
  --all, --no-all               a switch
  --argv uname --argv=-a        a list, an entry each; = for a value that begins with a dash
  --env TZ=UTC --env LANG=C     a map
  --data @photo.png             bytes: a file, or base64
  -- uname -a                   the rest of the line is the list argv

DEVICE is a name or an id; "this" is the machine of the control plane. \`run\` may be left out, unless the device is
called like a verb. If the call is held and you are an operator at a terminal, you are asked to decide. Ctrl-C cancels
the call on the device and waits for its end; a second one leaves at once.

${exitCodeHelp}
`;

/** Prints the help of a tool where one is named, and otherwise the command's. */
export async function showCallHelp(
  words: readonly string[],
  flags: RunFlags,
  command: Command,
  context: CommandContext,
): Promise<void> {
  const { device, tool } = splitWords(words, isFanOut(flags));
  if (device === undefined || tool === undefined) return command.outputHelp();
  const options = { width: Math.min(context.stdout.columns ?? 100, 120), style: styleFor(context, context.stdout) };
  const described = await toolToDescribe(flags, device, tool, context);
  context.stdout.write(toolHelp(described, device, options));
}

/** The tool as the device offers it; without a control plane, as it is built in. */
async function toolToDescribe(
  target: TargetFlags,
  device: string,
  name: string,
  context: CommandContext,
): Promise<Tool> {
  try {
    return await withSession(context, target, (session) => findTool(session.registry, device, name));
  } catch (error: unknown) {
    const builtIn = toolByName(name);
    const offline = error instanceof UsageError || ConnectError.from(error).code === Code.Unavailable;
    if (builtIn === undefined || !offline) throw error;
    return create(ToolSchema, builtIn);
  }
}
