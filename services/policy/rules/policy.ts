import type { CelContext } from "./cel-values.ts";
import type { Effect } from "./effect.ts";
import type { Verdict } from "./expression.ts";

/** A policy in force: every rule compiled, type-checked and proved by its examples. */
export interface Policy {
  /** The first 16 hex digits of the SHA-256 of the text. */
  version: string;
  /** The policy file's text. */
  text: string;
  /** How long an approval waits, in milliseconds. */
  approvalTtlMs: number;
  /** How long an approval counts once it was given, in milliseconds: for its call, and for the calls of a fan-out. */
  approvalValidMs: number;
  /** True when nobody may approve what they asked for themselves. */
  fourEyes: boolean;
  /** How long a grant is valid, in milliseconds. */
  grantTtlMs: number;
  /** All rules, in the order of the file. */
  rules: readonly Rule[];
  /** How many examples were run when it was loaded. */
  examples: number;
  /** The rules that can match a tool, in the order of the file. */
  rulesFor(tool: string): readonly Rule[];
}

/** One rule. */
export interface Rule {
  id: string;
  effect: Effect;
  /** Safe to show to a caller. */
  message: string;
  /** The longest that what it allows may run without a person's approval, in milliseconds. Undefined: no limit of its own. */
  maxRunMs: number | undefined;
  /** True where the rule's tools hold this one. */
  appliesTo(tool: string): boolean;
  /** What the rule's expression says. Never throws. */
  evaluate(context: CelContext): Verdict;
}

/** How many tools' rules are remembered. */
const CACHE_SIZE = 1024;

/** The rules of one tool, remembered: a call evaluates only these. */
export function rulesByTool(rules: readonly Rule[]): (tool: string) => readonly Rule[] {
  const known = new Map<string, readonly Rule[]>();
  return (tool) => {
    const found = known.get(tool) ?? rules.filter((rule) => rule.appliesTo(tool));
    if (known.size < CACHE_SIZE) known.set(tool, found);
    return found;
  };
}
