import type { Command } from "commander";
import { type Tool, ToolSchema } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { listTools } from "../call/find-tool.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withSession } from "../connection-options.ts";
import { withJson } from "../list-options.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";
import { styleFor } from "../print/style.ts";
import { table } from "../print/table.ts";
import type { TargetFlags } from "../target.ts";

interface ToolsFlags extends TargetFlags {
  device?: string;
  json?: true;
}

/** Registers `reeve tools`. */
export function registerTools(program: Command, context: CommandContext): void {
  const command = program.command("tools").description("List the tools that can be called on a device.");
  withJson(withConnection(command.option("-d, --device <name>", "the device; may be left out where there is one")))
    .addHelpText("after", "\n`reeve call DEVICE TOOL --help` tells how to call one.")
    .action((flags: ToolsFlags) => tools(flags, context));
}

async function tools(flags: ToolsFlags, context: CommandContext): Promise<void> {
  const found = await withSession(context, flags, ({ registry }) => listTools(registry, flags.device ?? ""));
  if (flags.json) {
    context.stdout.write(jsonDocument({ tools: found.map((tool) => wholeJson(ToolSchema, tool)) }));
    return;
  }
  const style = styleFor(context, context.stdout);
  const rows = found.map((tool) => [tool.name, traits(tool), firstSentence(tool.description)]);
  context.stdout.write(table(["TOOL", "TRAITS", "WHAT IT DOES"], rows, { style }));
}

function traits({ annotations, requiresApproval }: Tool): string {
  const words = [
    annotations?.readOnly === true ? "reads" : "acts",
    annotations?.destructive === true ? "destructive" : "",
    requiresApproval ? "needs approval" : "",
  ];
  return words.filter((word) => word !== "").join(", ");
}

function firstSentence(text: string): string {
  return /^.*?[.:](?=\s|$)/s.exec(text)?.[0] ?? text;
}
