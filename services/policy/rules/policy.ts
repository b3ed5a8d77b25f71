import type { Facts } from "../facts/facts.ts";
import type { Verdict } from "./expression.ts";
import type { Obligations } from "./obligations.ts";

/** What a rule does with the calls it matches, from the strictest to the mildest. */
export const EFFECTS = ["block", "deny", "hold", "allow"] as const;

/** block: never, no approval can lift it. deny: no. hold: a person decides. allow: yes. */
export type Effect = (typeof EFFECTS)[number];

/** True for the name of an effect. */
export function isEffect(name: string): name is Effect {
  return (EFFECTS as readonly string[]).includes(name);
}

/** True when the first effect is stricter than the second. */
export function isStricter(first: Effect, second: Effect): boolean {
  return EFFECTS.indexOf(first) < EFFECTS.indexOf(second);
}

/** A policy as it is active: every rule compiled, type-checked and proved by its examples. */
export interface Policy {
  /** The first 16 hex digits of the SHA-256 of the text. */
  version: string;
  /** The policy file's text. */
  text: string;
  /** How long an approval waits, in milliseconds. */
  approvalTtlMs: number;
  /** How long an approval counts once it was given, in milliseconds: for its call, and for the calls of a fan-out. */
  approvalValidMs: number;
  /** True when a principal may not approve its own call. */
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

export interface Rule {
  id: string;
  effect: Effect;
  /** Safe to show to a caller. */
  message: string;
  /** What it asks of the calls that it allows. */
  obligations: Obligations;
  /** True where the rule's tools hold this one. */
  appliesTo(tool: string): boolean;
  /** What the rule's expression says. Never throws. */
  evaluate(facts: Facts): Verdict;
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

/**
 * A test for a tool's name. A pattern is a name, or the beginning of one followed by "*"; no patterns match every tool.
 */
export function compileToolPatterns(patterns: readonly string[]): (tool: string) => boolean {
  if (patterns.length === 0) return () => true;
  const names = new Set(patterns.filter((pattern) => !pattern.endsWith("*")));
  const beginnings = patterns.filter((pattern) => pattern.endsWith("*")).map((pattern) => pattern.slice(0, -1));
  return (tool) => names.has(tool) || beginnings.some((beginning) => tool.startsWith(beginning));
}
