/** One import of a file. */
export interface Import {
  /** What is imported, as it is written: "./x.ts", "node:fs", "kysely". */
  specifier: string;
  /** True where nothing is loaded at run time. */
  typeOnly: boolean;
  /** The line it starts on, from 1. */
  line: number;
}

// Formatted code starts each static import at the start of a line, so text in strings and comments is not taken for one.
const STATIC = /^(?:import|export)\s+(type\s+)?(?:[\w$*{},\s]+\s+from\s+)?["']([^"'\n]+)["']/gm;
const DYNAMIC = /\b(?:import|require|getBuiltinModule|require\.resolve)\(\s*["'`]([^"'`\n]+)["'`]/g;

/** All imports of a TypeScript file that is formatted as this repository's are, static ones first. */
export function importsOf(text: string): Import[] {
  const code = blankComments(text);
  const found = [...code.matchAll(STATIC)].map((match) => entry(code, match, match[2], match[1] !== undefined));
  return [...found, ...[...code.matchAll(DYNAMIC)].map((match) => entry(code, match, match[1], false))];
}

/** The text with the lines that are comments made empty: line numbers stay. */
export function blankComments(text: string): string {
  return text.replace(/^[ \t]*(?:\/\/|\/\*|\*).*$/gm, "");
}

/** The line of a place in a text, from 1. */
export function lineAt(text: string, index: number): number {
  return text.slice(0, index).split("\n").length;
}

function entry(text: string, match: RegExpExecArray, specifier = "", typeOnly: boolean): Import {
  return { specifier, typeOnly, line: lineAt(text, match.index) };
}
