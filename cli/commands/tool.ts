import type { Command } from "commander";
import { type Tool, ToolSchema } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { findTool, listTools } from "../call/find-tool.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withSession } from "../connection-options.ts";
import { noteListed } from "../list-notes.ts";
import { withJson } from "../list-options.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";
import { readable } from "../print/readable.ts";
import { styleFor } from "../print/style.ts";
import { listTable } from "../print/table.ts";
import type { TargetFlags } from "../target.ts";

interface ToolFlags extends TargetFlags {
  device?: string;
  json?: true;
}

/** Registers `reeve tool` with list and show. */
export function registerTool(program: Command, context: CommandContext): void {
  const tool = program.command("tool").description("List and show the tools that can be called on a device.");
  const onDevice = (command: Command) =>
    withJson(withConnection(command.option("-d, --device <name>", "the device; may be left out if there is one")));
  onDevice(tool.command("list"))
    .description("List the tools of a device, by name.")
    .addHelpText("after", "\n`reeve call DEVICE TOOL --help` shows how to call one.")
    .action((flags: ToolFlags) => list(flags, context));
  onDevice(tool.command("show").argument("<tool>", "the tool's name"))
    .description("Show one tool: what it does, its capability, and the schemas of its input and output.")
    .action((name: string, flags: ToolFlags) => show(name, flags, context));
}

async function list(flags: ToolFlags, context: CommandContext): Promise<void> {
  const found = await withSession(context, flags, ({ registry }) => listTools(registry, flags.device ?? ""));
  if (flags.json) {
    context.stdout.write(jsonDocument({ tools: found.map((tool) => wholeJson(ToolSchema, tool)) }));
    return;
  }
  const rows = found.map((tool) => [tool.name, traits(tool), firstSentence(tool.description)]);
  context.stdout.write(listTable(["TOOL", "TRAITS", "WHAT IT DOES"], rows, context, { keep: ["TOOL"] }));
  noteListed({ things: "tools", shown: found.length, nextPageToken: "" }, context);
}

async function show(name: string, flags: ToolFlags, context: CommandContext): Promise<void> {
  const tool = await withSession(context, flags, ({ registry }) => findTool(registry, flags.device ?? "", name));
  if (flags.json) return void context.stdout.write(jsonDocument(wholeJson(ToolSchema, tool)));
  const facts = {
    tool: tool.name,
    traits: traits(tool),
    capability: tool.capabilities.join(", "),
    description: tool.description,
    input: tool.inputSchema ?? {},
    output: tool.outputSchema ?? {},
    "schema digest": tool.schemaDigest,
  };
  context.stdout.write(readable(facts, styleFor(context, context.stdout)));
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
  return /^.*?\.(?=\s|$)/s.exec(text)?.[0] ?? text;
}
