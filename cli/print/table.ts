import { stripVTControlCharacters } from "node:util";
import { visibleLine } from "./escape.ts";
import { plain, type Style } from "./style.ts";

/** How a table is drawn. */
export interface TableOptions {
  style?: Style;
  /** Colors a cell, given its plain text, its column and its row. Default: as it is. */
  paint?: (text: string, column: number, row: readonly string[]) => string;
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
  const { style = plain, paint = (text) => text } = options;
  const safe = rows.map((row) => columns.map((_, index) => visibleLine(row[index] ?? "")));
  const widths = columns.map((name, index) => Math.max(...[name, ...safe.map((row) => row[index] ?? "")].map(widthOf)));
  const line = (cells: readonly string[]) =>
    cells
      .map((cell, index) => pad(cell, widths[index] ?? 0))
      .join("  ")
      .trimEnd();
  const head = line(columns.map((name) => style.bold(name)));
  return `${[head, ...safe.map((row) => line(row.map((cell, index) => paint(cell, index, row))))].join("\n")}\n`;
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
