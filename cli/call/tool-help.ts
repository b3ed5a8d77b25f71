import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Option } from "commander";
import type { Tool } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { deriveFlags } from "../flags/derive.ts";
import type { Flag } from "../flags/flag.ts";
import { type HelpEntry, helpBlock, helpEntry, wrap } from "../flags/help.ts";
import { visible, visibleLine } from "../print/escape.ts";
import type { Style } from "../print/style.ts";
import { durationText } from "../print/time.ts";
import { runOptions, takenNames } from "./run-options.ts";

/** What a help page is drawn with. */
export interface HelpOptions {
  /** Characters in a line. */
  width: number;
  style: Style;
}

/** The help page of one tool, all of it from its definition. Ends with a newline. */
export function toolHelp(tool: Tool, device: string, { width, style }: HelpOptions): string {
  const flags = deriveFlags(tool.inputSchema ?? {}, takenNames);
  const name = visibleLine(tool.name);
  return [
    `${style.bold("Usage:")} reeve call ${visibleLine(device)} ${name}${usage(flags)}`,
    "",
    ...wrap(visible(tool.description), width),
    "",
    ...wrap(traits(tool), width),
    "",
    style.bold("Flags:"),
    (flags.length === 0 ? "  none\n" : helpBlock(flags.map(helpEntry), width, style)).trimEnd(),
    "",
    style.bold("Options of every call:"),
    helpBlock(runOptions.map(optionEntry), width, style),
  ].join("\n");
}

function optionEntry({ flags, description }: Option): HelpEntry {
  return { term: flags, text: description };
}

function usage(flags: readonly Flag[]): string {
  const required = flags.filter((flag) => flag.required).map((flag) => ` ${helpEntry(flag).term}`);
  const more = flags.length > required.length ? " [flags]" : "";
  return required.join("") + more;
}

function traits({ capabilities, annotations, requiresApproval, defaultTimeout }: Tool): string {
  const words = [
    `Needs the ${capabilities.length === 1 ? "capability" : "capabilities"} ${visibleLine(capabilities.join(", "))}.`,
    annotations?.readOnly === true ? "Changes nothing." : "",
    annotations?.destructive === true ? "May destroy what cannot be brought back." : "",
    annotations?.openWorld === true ? "May reach machines beyond the device." : "",
    requiresApproval ? "Every call waits for a human's approval." : "",
    defaultTimeout === undefined ? "" : `Runs for at most ${durationText(durationMs(defaultTimeout))} by default.`,
  ];
  return words.filter((word) => word !== "").join(" ");
}
