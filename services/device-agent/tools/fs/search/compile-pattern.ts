import { RE2JS } from "@bufbuild/re2";
import { invalidField } from "../../../../../lib/fault/invalid-input.ts";

/** Whether a line matches. */
export type LineTest = (line: string) => boolean;

/**
 * The most instructions of a compiled expression. Matching takes at most as many steps for each character, so this and the
 * longest line bound what one line costs.
 */
const MAX_INSTRUCTIONS = 2000;

/** A test by RE2, which takes time linear in the line. Fault: INVALID_INPUT for no expression, or one that is too large. */
export function compilePattern(pattern: string, options: { literal: boolean; ignoreCase: boolean }): LineTest {
  const source = options.literal ? RE2JS.quote(pattern) : pattern;
  const compiled = compile(source, options.ignoreCase ? RE2JS.CASE_INSENSITIVE : 0);
  return (line) => compiled.test(line);
}

function compile(source: string, flags: number): RE2JS {
  try {
    const compiled = RE2JS.compile(source, flags);
    if (compiled.re2().prog.numInst() <= MAX_INSTRUCTIONS) return compiled;
  } catch (cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw invalidField("pattern", "re2", `is no RE2 expression: ${why}`, { cause });
  }
  throw invalidField("pattern", "re2.size", "is too large an expression: repeat less");
}
