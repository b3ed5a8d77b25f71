import { RE2JS } from "@bufbuild/re2";
import type { ASTNode, Environment } from "@marcbachmann/cel-js";
import { charge } from "./cost-limit.ts";
import { isNode, nodesOf } from "./nodes.ts";

/** What stands behind `matches` in rules. */
const LINEAR = "linearMatches";

/** A pattern that cannot be used, and where it stands in the expression. */
export interface PatternProblem {
  message: string;
  /** The offset in the expression. */
  offset: number;
}

/**
 * Gives an environment a `matches` that takes time linear in the text (RE2, as the CEL specification asks): the
 * library's own backtracks, and the text is the caller's. Used by expressions that went through `useLinearMatches`.
 */
export function registerLinearMatches(environment: Environment): void {
  const compiled = new Map<string, RE2JS>();
  environment.registerFunction(`string.${LINEAR}(string): bool`, {
    async: false,
    handler: (text: string, pattern: string) => {
      charge(text.length / 16);
      const known = compiled.get(pattern) ?? RE2JS.compile(pattern);
      compiled.set(pattern, known);
      return known.test(text);
    },
  });
}

/**
 * Makes each `matches` of a parsed expression the linear one. Patterns must be written out in the rule, so that a bad
 * one is found now and none is ever made from a caller's text.
 */
export function useLinearMatches(ast: ASTNode): PatternProblem | undefined {
  for (const node of nodesOf(ast)) {
    if (node.op === "rcall" && Array.isArray(node.args) && node.args[0] === "matches") {
      const problem = patternProblem(node.args[2]);
      if (problem !== undefined) return { message: problem, offset: node.start };
      node.args[0] = LINEAR;
    }
  }
  return undefined;
}

function patternProblem(parameters: unknown): string | undefined {
  const [pattern] = Array.isArray(parameters) ? parameters : [];
  if (!isNode(pattern) || pattern.op !== "value" || typeof pattern.args !== "string") {
    return "the pattern of matches must be written out as a text";
  }
  try {
    RE2JS.compile(pattern.args);
    return undefined;
  } catch (e: unknown) {
    return e instanceof Error ? e.message : String(e);
  }
}
