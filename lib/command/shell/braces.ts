import { LIMITS } from "../limits.ts";

/** How many numbers of a long range are taken from each of its ends where its ends are enough. */
const ENDS = 8;

/**
 * The words that the braces of a word stand for, as bash expands them before anything else: quotes, escapes and `\${` are
 * left alone, and what is no list or range stays. The text keeps its quotes. Undefined for more than LIMITS.words.
 *
 * @param ranges "ends": of a long range of numbers, only the first and the last ones.
 */
export function expandBraces(text: string, ranges: "whole" | "ends"): string[] | undefined {
  const found: string[] = [];
  const open = [text];
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const choices = firstChoices(next, ranges);
    if (choices === undefined) found.push(next);
    else open.push(...choices.reverse());
    if (found.length + open.length > LIMITS.words) return undefined;
  }
  return found;
}

/** The words that the first list or range of a text gives; undefined where it has none. */
function firstChoices(text: string, ranges: "whole" | "ends"): string[] | undefined {
  for (let at = 0; at < text.length; at = next(text, at)) {
    if (text[at] !== "{") continue;
    const body = bodyAt(text, at);
    if (body === undefined) continue;
    const choices = body.commas.length > 0 ? listed(text, at, body) : ranged(text.slice(at + 1, body.end), ranges);
    if (choices === undefined) continue;
    return choices.map((choice) => text.slice(0, at) + choice + text.slice(body.end + 1));
  }
  return undefined;
}

interface Body {
  end: number;
  commas: number[];
}

function bodyAt(text: string, start: number): Body | undefined {
  let depth = 0;
  const commas: number[] = [];
  for (let at = start; at < text.length; at = next(text, at)) {
    const char = text[at];
    if (char === "{") depth += 1;
    else if (char === "," && depth === 1) commas.push(at);
    else if (char === "}") {
      depth -= 1;
      if (depth === 0) return { end: at, commas };
    }
  }
  return undefined;
}

function listed(text: string, start: number, { end, commas }: Body): string[] {
  const edges = [start, ...commas, end];
  return edges.slice(1).map((edge, index) => text.slice((edges[index] ?? 0) + 1, edge));
}

function ranged(body: string, ranges: "whole" | "ends"): string[] | undefined {
  const match = /^(-?\d{1,9}|[A-Za-z])\.\.(-?\d{1,9}|[A-Za-z])(?:\.\.(-?\d{1,9}))?$/.exec(body);
  if (match === null) return undefined;
  const [, from = "", to = "", by = "1"] = match;
  const letters = /^[A-Za-z]$/.test(from);
  if (letters !== /^[A-Za-z]$/.test(to)) return undefined;
  const number = (word: string): number => (letters ? word.charCodeAt(0) : Number(word));
  const width = /^-?0\d/.test(from) || /^-?0\d/.test(to) ? Math.max(from.length, to.length) : 0;
  const [start, end] = [number(from), number(to)];
  const step = Math.max(1, Math.abs(Number(by))) * (start <= end ? 1 : -1);
  const last = Math.floor((end - start) / step);
  const places =
    ranges === "ends" && last >= 2 * ENDS
      ? [
          ...upTo(ENDS),
          ...upTo(ENDS)
            .map((n) => last - n)
            .reverse(),
        ]
      : upTo(Math.min(last, LIMITS.words) + 1);
  return places.map((place) => {
    const value = start + place * step;
    return letters ? String.fromCharCode(value) : String(value).padStart(width, "0");
  });
}

function upTo(count: number): number[] {
  return Array.from({ length: count }, (_, n) => n);
}

/** The place behind what begins here: a quoted part, an escape or a `\${…}` counts as one. */
function next(text: string, at: number): number {
  const char = text[at];
  if (char === "\\") return at + 2;
  if (char === "'") return behind(text, at + 1, "'", false);
  if (char === '"') return behind(text, at + 1, '"', true);
  if (char === "`") return behind(text, at + 1, "`", true);
  if (char === "$" && text[at + 1] === "'") return behind(text, at + 2, "'", true);
  if (char === "$" && text[at + 1] === "{") return behind(text, at + 2, "}", true);
  if (char === "$" && text[at + 1] === "(") return behind(text, at + 2, ")", true);
  return at + 1;
}

function behind(text: string, from: number, close: string, escapes: boolean): number {
  for (let at = from; at < text.length; at++) {
    if (escapes && text[at] === "\\") at += 1;
    else if (text[at] === close) return at + 1;
  }
  return text.length;
}
