import { stripVTControlCharacters } from "node:util";
import type { CommandContext } from "../command-context.ts";
import { visibleLine } from "./escape.ts";
import { plain, type Style, styleFor } from "./style.ts";

/** How a table is drawn. */
export interface TableOptions {
  style?: Style;
  /** Colors a cell, given its plain text, its column and its row. Default: as it is. */
  paint?: (text: string, column: number, row: readonly string[]) => string;
  /** How wide a line may be; long cells are cut for it. Default: as wide as the cells. */
  width?: number | undefined;
  /** The columns that are never cut, such as ids, which a reader copies. */
  keep?: readonly string[];
  /** Draws one table in parts: the first has the headings, and the later ones keep to its columns. */
  parts?: TableParts;
}

/** What the parts of one table share; starts empty. */
export interface TableParts {
  widths?: readonly number[];
}

/** How a list is drawn. */
export interface ListTableOptions extends Pick<TableOptions, "keep" | "parts"> {
  /** By column, the colors of cells with these texts. */
  colors?: Readonly<Record<string, Readonly<Record<string, Color>>>>;
}

type Color = "red" | "green" | "yellow";

/** A table for standard output: in colors where that takes them, cut to a terminal's width, whole elsewhere. */
export function listTable(
  columns: readonly string[],
  rows: readonly (readonly string[])[],
  context: Pick<CommandContext, "env" | "stdout">,
  { keep = [], colors = {}, parts = {} }: ListTableOptions = {},
): string {
  const style = styleFor(context, context.stdout);
  const paint = (text: string, column: number): string => {
    const color = colors[columns[column] ?? ""]?.[text.trim()];
    return color === undefined ? text : style[color](text);
  };
  return table(columns, rows, { style, paint, keep, parts, width: lineWidth(context) });
}

/** How wide a line of standard output is: COLUMNS, else the terminal's width; undefined where neither is known. */
function lineWidth({ env, stdout }: Pick<CommandContext, "env" | "stdout">): number | undefined {
  const named = Number(env.COLUMNS);
  if (Number.isInteger(named) && named > 0) return named;
  return stdout.isTTY === true ? stdout.columns : undefined;
}

/**
 * Rows under headings, aligned, two spaces apart, without borders. Cells are made safe for a terminal and put on one
 * line. Ends with a newline; empty where there are no rows.
 */
export function table(
  columns: readonly string[],
  rows: readonly (readonly string[])[],
  options: TableOptions = {},
): string {
  if (rows.length === 0) return "";
  const { style = plain, paint = (text) => text, width = Infinity, keep = [], parts = {} } = options;
  const { widths: before = [] } = parts;
  const safe = rows.map((row) => columns.map((_, index) => visibleLine(row[index] ?? "")));
  const needed = columns.map((name, index) =>
    Math.max(before[index] ?? 0, ...[name, ...safe.map((row) => row[index] ?? "")].map(widthOf)),
  );
  parts.widths = needed;
  const widths = fitted(needed, columns, keep, width);
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, index) => pad(cell, widths[index] ?? 0))
      .join("  ")
      .trimEnd();
  const head = line(columns.map((name) => style.bold(name)));
  return `${[...(before.length > 0 ? [] : [head]), ...safe.map((row) => line(row.map((cell, index) => paint(cut(cell, widths[index] ?? 0), index, row))))].join("\n")}\n`;
}

/** A column is never cut below this. */
const MIN_CUT = 8;

/** What a column that is never cut counts for; one that is longer makes the line wrap, and leaves the others readable. */
const MAX_KEPT = 28;

/** Widths that fit a line: the widest column that can be cut gives way first. */
function fitted(
  needed: readonly number[],
  columns: readonly string[],
  keep: readonly string[],
  width: number,
): number[] {
  const widths = [...needed];
  const isKept = columns.map((name) => keep.includes(name));
  const counted = needed.reduce((sum, one, index) => sum + (isKept[index] ? Math.min(one, MAX_KEPT) : one), 0);
  for (let over = counted + 2 * (needed.length - 1) - width; over > 0; over--) {
    const room = widths.map((one, index) => (isKept[index] || one <= MIN_CUT ? 0 : one));
    const widest = room.indexOf(Math.max(...room));
    if (room[widest] === 0) break;
    widths[widest] = (widths[widest] ?? 0) - 1;
  }
  return widths;
}

function cut(text: string, width: number): string {
  if (widthOf(text) <= width) return text;
  let kept = "";
  for (const character of text) {
    if (widthOf(kept + character) > width - 1) break;
    kept += character;
  }
  return `${kept}…`;
}

function pad(text: string, width: number): string {
  return text + " ".repeat(Math.max(0, width - widthOf(text)));
}

const WIDE =
  /[\u1100-\u115f\u2e80-\ua4cf\uac00-\ud7a3\uf900-\ufaff\ufe30-\ufe6f\uff00-\uff60\uffe0-\uffe6]|\p{Emoji_Presentation}/gu;

/** How many columns a text takes: two for an East Asian or emoji character, none for a combining one. */
function widthOf(text: string): number {
  const bare = stripVTControlCharacters(text).replace(/\p{Mark}/gu, "");
  return Array.from(bare).length + (bare.match(WIDE)?.length ?? 0);
}
