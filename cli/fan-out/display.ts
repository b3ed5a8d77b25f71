import { stripVTControlCharacters } from "node:util";
import type { Tool } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { runsProgram } from "../call/show-call.ts";
import type { CommandContext } from "../command-context.ts";
import { safeFor, visibleLine } from "../print/escape.ts";
import { readable } from "../print/readable.ts";
import { styleFor } from "../print/style.ts";
import { type Board, type DeviceLine, lineText } from "./board.ts";

/** Shows a fan-out to a person: how each device stands on standard error, what came back on standard output. */
export interface Display {
  /** A device stands otherwise than before. */
  changed(line: DeviceLine): void;
  /** Says something that is no device's line. */
  say(text: string): void;
  /** Leaves the terminal to others, as to a question, until the result is called. */
  yield(): () => void;
}

/** With more devices than this there is no room to redraw them all: every change is a line of its own. */
const MOST_REDRAWN = 40;

/** On a terminal a line for each device, redrawn in its place; elsewhere a line for each change. */
export function createDisplay(board: Board, tool: Tool, context: CommandContext): Display {
  const style = styleFor(context, context.stderr);
  const nameWidth = Math.max(...board.lines().map(({ device }) => visibleLine(device).length), 0);
  const redraws = context.stderr.isTTY === true && board.lines().length <= MOST_REDRAWN;
  let drawn = 0;
  let yielded = 0;

  const erase = () => {
    if (drawn > 0) context.stderr.write(`\x1b[${drawn}A\x1b[J`);
    drawn = 0;
  };
  const draw = () => {
    if (!redraws || yielded > 0) return;
    const lines = board.lines().map((line) => cut(lineText(line, nameWidth, style), context.stderr.columns));
    context.stderr.write(lines.map((line) => `${line}\n`).join(""));
    drawn = lines.length;
  };

  return {
    changed(line) {
      erase();
      printResult(line, tool, nameWidth, context);
      if (!redraws) context.stderr.write(`${lineText(line, nameWidth, style)}\n`);
      draw();
    },
    say(text) {
      erase();
      context.stderr.write(`reeve: ${text}\n`);
      draw();
    },
    yield() {
      erase();
      yielded += 1;
      return () => {
        yielded -= 1;
        draw();
      };
    },
  };
}

/** What a call returned, each line under its device's name. */
function printResult({ device, call }: DeviceLine, tool: Tool, nameWidth: number, context: CommandContext): void {
  const output = call?.status.output;
  if (output === undefined) return;
  const style = styleFor(context, context.stdout);
  const name = style.dim(`${visibleLine(device).padEnd(nameWidth)} │`);
  const text = runsProgram(tool)
    ? [output.stdout, output.stderr].filter((part) => typeof part === "string").join("")
    : readable(output, style);
  if (text === "") return;
  for (const line of text.replace(/\n$/, "").split("\n")) {
    context.stdout.write(`${name} ${runsProgram(tool) ? safeFor(context.stdout, line) : line}\n`);
  }
}

/** Cut to the terminal's width: a line that is broken takes two, and the next redraw would leave one of them. */
function cut(line: string, columns = 80): string {
  const tooLong = stripVTControlCharacters(line).length - columns + 1;
  return tooLong > 0 ? `${stripVTControlCharacters(line).slice(0, -tooLong - 1)}…` : line;
}
