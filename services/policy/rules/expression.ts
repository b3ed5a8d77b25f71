import { Environment } from "@marcbachmann/cel-js";
import { isDocument, isInProgramFolder } from "../../../lib/paths/documents.ts";
import { isHidden } from "../../../lib/paths/hidden-paths.ts";
import { type Facts, registerFacts } from "../facts/facts.ts";
import { capabilityNames } from "./capability-names.ts";
import { chargeWalks, evaluateLimited, type Limited, registerCharges } from "./cost-limit.ts";
import { registerLinearMatches, useLinearMatches } from "./linear-matches.ts";

/** What an expression said about one call. */
export type Verdict =
  | { kind: "match" }
  | { kind: "no_match" }
  | { kind: "error"; message: string }
  | { kind: "over_limit" };

/** A checked expression. Never throws, and takes no longer than its cost limit allows; anything but true is no match. */
export type Expression = (facts: Facts) => Verdict;

/**
 * The expression and the capabilities that it names, or what is wrong with it; with the lines of its text, from 0.
 */
export type ExpressionResult =
  | { ok: true; expression: Expression; capabilities: readonly { name: string; line: number }[] }
  | { ok: false; message: string; line: number };

const LIMITS = { maxAstNodes: 2000, maxDepth: 64, maxListElements: 1000, maxMapEntries: 100, maxCallArguments: 8 };

// The tables of the language are built once: the environment is shared and never changed afterwards.
const environment = createEnvironment();

/**
 * Compiles a CEL expression over the facts of a request and checks its types: an unknown variable, field or function, types that do not fit, or a result that is no bool is refused. What is under
 * `args` has a type only at evaluation.
 */
export function compileExpression(text: string): ExpressionResult {
  try {
    const parsed = environment.parse(text);
    const capabilities = capabilityNames(parsed.ast).map(({ name, offset }) => ({ name, line: lineAt(text, offset) }));
    const pattern = useLinearMatches(parsed.ast);
    if (pattern !== undefined) return refused(pattern.message, text, pattern.offset);
    const checked = parsed.check();
    if (!checked.valid) return refusedBy(checked.error, text);
    if (checked.type !== "bool") return refused(`the result must be bool, not ${checked.type}`, text, 0);
    const limited = limitedOf(text);
    const expression: Expression = (facts) => verdictOf(evaluateLimited(() => limited(facts as never)));
    return { ok: true, expression, capabilities };
  } catch (e: unknown) {
    return refusedBy(e, text);
  }
}

const MATCH: Verdict = { kind: "match" };
const NO_MATCH: Verdict = { kind: "no_match" };

/** The expression as it is evaluated. It was checked as it is written, since charged values have no types. */
function limitedOf(text: string): ReturnType<Environment["parse"]> {
  const parsed = environment.parse(text);
  useLinearMatches(parsed.ast);
  chargeWalks(environment, parsed.ast);
  const checked = parsed.check();
  if (!checked.valid) throw checked.error;
  return parsed;
}

function verdictOf(result: Limited): Verdict {
  if (result.kind === "error") return { kind: "error", message: summaryOf(result.error) };
  if (result.kind === "over_limit") return result;
  return result.value === true ? MATCH : NO_MATCH;
}

function createEnvironment(): Environment {
  const made = new Environment({ unlistedVariablesAreDyn: false, limits: LIMITS });
  registerFacts(made);
  registerLinearMatches(made);
  registerPathFunctions(made);
  registerCharges(made);
  return made;
}

function refusedBy(error: unknown, text: string): ExpressionResult {
  const range = typeof error === "object" && error !== null && "range" in error ? error.range : undefined;
  const offset = typeof range === "object" && range !== null && "start" in range ? Number(range.start) : 0;
  return refused(summaryOf(error), text, offset);
}

function refused(message: string, text: string, offset: number): ExpressionResult {
  return { ok: false, message, line: lineAt(text, offset) };
}

function lineAt(text: string, offset: number): number {
  return text.slice(0, offset).split("\n").length - 1;
}

// The library's messages carry a drawing of the source; the summary is the sentence alone.
function summaryOf(error: unknown): string {
  if (typeof error === "object" && error !== null && "summary" in error) return String(error.summary);
  return error instanceof Error ? error.message : String(error);
}

/**
 * Gives an environment the functions about paths that rules can use. Patterns over a path's text miss its other
 * spellings; these look at its names. All are linear in the text, and pure: no disk is looked at.
 */
function registerPathFunctions(environment: Environment): void {
  environment
    .registerFunction("string.isDocument(): bool", { async: false, handler: (path: string) => isDocument(path) })
    .registerFunction("string.isInProgramFolder(): bool", {
      async: false,
      handler: (path: string) => isInProgramFolder(path),
    })
    .registerFunction("string.isHidden(list<string>): bool", {
      async: false,
      handler: (path: string, roots: readonly string[]) => isHidden(path, roots),
    });
}
