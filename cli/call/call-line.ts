import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { shellWord } from "../../lib/programs/shell-word.ts";
import { visibleLine } from "../print/escape.ts";

/** How much of a call a table has room for, in characters. */
const WIDTH = 60;

/** Fields whose value says most of what a call does; shown first and without their name. */
const MAIN_FIELDS = ["argv", "command", "path", "url", "container", "unit", "packages", "pid"];

/**
 * A call in one line, such as "exec uname -a" or "fs.write /tmp/a text=hello": its tool, then its arguments. The middle of a
 * long line is left out. Safe for a terminal.
 */
export function callLine(tool: string, args: JsonObject | undefined, width = WIDTH): string {
  if (args === undefined) return visibleLine(tool);
  const main = MAIN_FIELDS.filter((name) => Object.hasOwn(args, name));
  const others = Object.keys(args).filter((name) => !main.includes(name));
  const words = [
    ...main.flatMap((name) => wordsOf(args[name] ?? null)),
    ...others.map((name) => `${name}=${wordsOf(args[name] ?? null).join(" ")}`),
  ];
  return shortened(visibleLine([tool, ...words].join(" ")), width);
}

function wordsOf(value: JsonValue): string[] {
  if (Array.isArray(value))
    return value.map((item) => (typeof item === "string" ? quoted(item) : JSON.stringify(item)));
  return [typeof value === "string" ? quoted(value) : JSON.stringify(value)];
}

/** As a shell would want it, where it has to be quoted. */
function quoted(word: string): string {
  return /^[\w@%+=:,./~[\]-]+$/.test(word) ? word : shellWord(word);
}

/** The beginning and the end: what is padded at one of them still shows the other. */
function shortened(line: string, width: number): string {
  const characters = Array.from(line);
  if (characters.length <= width) return line;
  const head = Math.ceil((width - 1) * 0.6);
  return `${characters.slice(0, head).join("")}…${characters.slice(-(width - 1 - head)).join("")}`;
}
