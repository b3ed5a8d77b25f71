import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import { visible, visibleLine } from "./escape.ts";
import { plain, type Style } from "./style.ts";
import { table } from "./table.ts";

/**
 * A JSON object for people: a line for each simple value, a table for a list of simple objects, and what is within
 * something else is indented. Empty texts and what is false are left out. Made safe for a terminal. Ends with a newline; empty for an empty object.
 */
export function readable(value: JsonObject, style: Style = plain): string {
  return Object.entries(value)
    .filter(([, entry]) => entry !== "" && entry !== false)
    .map(([key, entry]) => property(visibleLine(key), entry, style))
    .join("");
}

function property(key: string, value: JsonValue, style: Style): string {
  const name = style.dim(`${key}:`);
  if (isSimple(value)) {
    const text = simpleText(value);
    return text.includes("\n") ? `${name}\n${indent(visible(text))}` : `${name} ${visible(text)}\n`;
  }
  const inner = Array.isArray(value) ? listText(value, style) : readable(value, style);
  return inner === "" ? `${name} (none)\n` : `${name}\n${indent(inner)}`;
}

function listText(values: readonly JsonValue[], style: Style): string {
  if (values.length > 0 && values.every(isRow)) return rowsText(values, style);
  return values.map((value) => itemText(value, style)).join("");
}

function itemText(value: JsonValue, style: Style): string {
  if (isSimple(value)) return `- ${visibleLine(simpleText(value))}\n`;
  const inner = Array.isArray(value) ? listText(value, style) : readable(value, style);
  return `-${indent(inner).slice(1)}`;
}

/** Columns in the order in which the rows first use them. */
function rowsText(rows: readonly JsonObject[], style: Style): string {
  const columns = [...new Set(rows.flatMap((row) => Object.keys(row)))];
  const cells = rows.map((row) => columns.map((column) => simpleText(row[column] ?? "")));
  return table(columns.map(visibleLine), cells, { style });
}

function isRow(value: JsonValue): value is JsonObject {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return false;
  return Object.keys(value).length > 0 && Object.values(value).every(isSimple);
}

function isSimple(value: JsonValue): value is string | number | boolean | null {
  return typeof value !== "object" || value === null;
}

function simpleText(value: JsonValue): string {
  return typeof value === "string" ? value : JSON.stringify(value);
}

function indent(text: string): string {
  return `${text.replace(/\n$/, "").replace(/^/gm, "  ")}\n`;
}
