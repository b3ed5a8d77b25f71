import { create } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { type Tool, ToolSchema } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { toolByName } from "../../lib/toolschema/catalog-file.ts";
import type { CommandContext } from "../command-context.ts";
import { withSession } from "../connection-options.ts";
import { UsageError } from "../errors/usage-error.ts";
import { exitCodeHelp } from "../exit-codes.ts";
import { helpBlock } from "../flags/help.ts";
import { styleFor } from "../print/style.ts";
import { type CallWords, callHelp } from "./call-words.ts";
import { findTool } from "./find-tool.ts";
import { type HelpOptions, toolHelp } from "./tool-help.ts";

/** How `reeve call` is typed. */
export const callUsage = "DEVICE TOOL [--flag VALUE ...] [options] [-- ARGV ...]";

/** How it is typed for many devices. */
export const fanOutUsage = "--on SELECTOR|--devices NAME,… TOOL [--flag VALUE ...] [options] [-- ARGV ...]";

/** The help that was asked for: a tool's own where one is named. */
export async function showCallHelp(words: CallWords, context: CommandContext): Promise<void> {
  const options = { width: Math.min(context.stdout.columns ?? 100, 120), style: styleFor(context, context.stdout) };
  const { device, tool } = words;
  if (device === undefined || tool === undefined) return void context.stdout.write(generalHelp(options));
  context.stdout.write(toolHelp(await toolToDescribe(words, device, tool, context), device, options));
}

function generalHelp({ width, style }: HelpOptions): string {
  return [
    `${style.bold("Usage:")} reeve call ${callUsage}`,
    `       reeve call ${fanOutUsage}`,
    "",
    "Call a tool on a device. The flags come from the tool's input schema:",
    "`reeve call DEVICE TOOL --help` lists them, and `reeve tools` lists the tools.",
    'The device is a name or an id; "this" is the machine of the control plane.',
    "",
    style.bold("Flags of a tool:"),
    "  --timeout-ms 5000             timeoutMs in the schema",
    "  --all, --no-all               a switch",
    "  --argv uname --argv=-a        a list, an entry each; = for a value that begins with a dash",
    "  --env TZ=UTC --env LANG=C     a map",
    "  --data @photo.png             bytes: a file, or base64",
    "  -- uname -a                   the rest of the line is the list argv",
    "",
    style.bold("Options:"),
    helpBlock(callHelp, width, style).trimEnd(),
    "",
    "When the call is held and you are an operator at a terminal, you are asked to decide.",
    "Ctrl-C cancels the call on the device and waits for its end; a second one leaves at once.",
    "",
    exitCodeHelp,
    "",
  ].join("\n");
}

/** The tool as the device offers it; without a control plane, as it is built in. */
async function toolToDescribe(words: CallWords, device: string, name: string, context: CommandContext): Promise<Tool> {
  try {
    return await withSession(context, words.target, (session) => findTool(session.registry, device, name));
  } catch (error: unknown) {
    const builtIn = toolByName(name);
    const away = error instanceof UsageError || ConnectError.from(error).code === Code.Unavailable;
    if (builtIn === undefined || !away) throw error;
    return create(ToolSchema, builtIn);
  }
}
