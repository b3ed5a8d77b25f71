import { RE2JS } from "@bufbuild/re2";
import { invalidField } from "../../../../../lib/fault/invalid-input.ts";

/** Which files and folders a search takes. Paths are relative to where it began. */
export interface PathFilter {
  isFileWanted(path: string): boolean;
  /** False for a folder of which nothing is wanted. */
  isFolderWanted(path: string): boolean;
}

interface Glob {
  isExcluding: boolean;
  test(path: string): boolean;
}

/**
 * Makes a filter of globs. A file is wanted that matches one of them, or any where none but excluding ones ("!") are given,
 * and no excluding one. Fault: INVALID_INPUT for what is no glob.
 */
export function createPathFilter(globs: readonly string[]): PathFilter {
  const all = globs.map((glob, at) => globOf(glob, `globs[${at}]`));
  const including = all.filter(({ isExcluding }) => !isExcluding);
  const isExcluded = (path: string): boolean => all.some((glob) => glob.isExcluding && glob.test(path));
  return {
    isFileWanted: (path) => !isExcluded(path) && (including.length === 0 || including.some((glob) => glob.test(path))),
    // A slash behind it is what "folder/**" matches.
    isFolderWanted: (path) => !isExcluded(path) && !isExcluded(`${path}/`),
  };
}

function globOf(text: string, field: string): Glob {
  const isExcluding = text.startsWith("!");
  const glob = isExcluding ? text.slice(1) : text;
  const source = `^(?:${expressionOf(glob.replace(/^\//, ""))})$`;
  const compiled = compile(source, field);
  const isName = !glob.includes("/");
  return { isExcluding, test: (path) => compiled.test(isName ? path.slice(path.lastIndexOf("/") + 1) : path) };
}

function compile(source: string, field: string): RE2JS {
  try {
    return RE2JS.compile(source, RE2JS.DOTALL);
  } catch (cause: unknown) {
    throw invalidField(field, "glob", "is no glob: are its braces closed?", { cause });
  }
}

/** The parts of a glob that are more than themselves, the longest first. */
const SPECIAL = /\*\*\/|\*\*|\*|\?|[{},]/g;

function expressionOf(glob: string): string {
  let depth = 0;
  let from = 0;
  let source = "";
  for (const { 0: part, index } of glob.matchAll(SPECIAL)) {
    source += RE2JS.quote(glob.slice(from, index));
    from = index + part.length;
    if (part === "{") depth++;
    if (part === "}") depth--;
    source += MEANINGS.get(part) ?? (depth > 0 ? "|" : ",");
  }
  return source + RE2JS.quote(glob.slice(from));
}

const MEANINGS: ReadonlyMap<string, string> = new Map([
  ["**/", "(?:.*/)?"],
  ["**", ".*"],
  ["*", "[^/]*"],
  ["?", "[^/]"],
  ["{", "(?:"],
  ["}", ")"],
]);
