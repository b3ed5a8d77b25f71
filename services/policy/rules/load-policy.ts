import { analyzeCall } from "../../../lib/command/call.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { builtInCapabilities, builtInTools, toolByName } from "../../../lib/toolschema/catalog-file.ts";
import { nearestName } from "../../../lib/yaml/nearest-name.ts";
import type { ToolLookup } from "../facts/decision-request.ts";
import { factsOf } from "../facts/facts.ts";
import { completeExample } from "./example.ts";
import { compileExpression, type Verdict } from "./expression.ts";
import { compileToolPatterns, type Policy, type Rule, rulesByTool } from "./policy.ts";
import { type ExampleText, parsePolicyFile, type RuleText, type Written } from "./policy-file.ts";
import type { PolicyProblem } from "./problem.ts";

/** The policy, or everything that is wrong with its text. */
export type LoadResult = { ok: true; policy: Policy } | { ok: false; version: string; problems: PolicyProblem[] };

/** The version of a policy's text: the first 16 hex digits of its SHA-256. */
export function policyVersion(text: string): string {
  return sha256Hex(text).slice(0, 16);
}

/**
 * Compiles a policy file and runs its examples. The whole file is refused for one bad rule or one failing example, and
 * all problems are reported at once. Pure.
 *
 * @param lookup finds built-in tools: examples are completed from them, and a rule for an unknown tool is refused.
 */
export function loadPolicy(text: string, lookup: ToolLookup): LoadResult {
  const version = policyVersion(text);
  const parsed = parsePolicyFile(text);
  if (!parsed.ok) return { ok: false, version, problems: parsed.problems };
  const compiled = parsed.file.rules.map((rule) => compileRule(rule, lookup));
  const problems = compiled.flatMap((result) => result.problems);
  if (problems.length > 0) return { ok: false, version, problems };
  const rules = compiled.map((result) => result.rule);
  const { rules: _written, ...limits } = parsed.file;
  const examples = parsed.file.rules.reduce((sum, rule) => sum + rule.match.length + rule.noMatch.length, 0);
  return {
    ok: true,
    policy: { version, text, ...limits, rules, examples, rulesFor: rulesByTool(rules) },
  };
}

export type PolicyCheck =
  | { ok: true; version: string; rules: number; examples: number }
  | { ok: false; version: string; problems: PolicyProblem[] };

/** Checks a policy file as it would be checked when loaded, without loading it. Pure. */
export function checkPolicyFile(text: string, lookup: ToolLookup = toolByName): PolicyCheck {
  const result = loadPolicy(text, lookup);
  if (!result.ok) return result;
  return {
    ok: true,
    version: result.policy.version,
    rules: result.policy.rules.length,
    examples: result.policy.examples,
  };
}

interface CompiledRule {
  rule: Rule;
  problems: PolicyProblem[];
}

function compileRule(written: RuleText, lookup: ToolLookup): CompiledRule {
  const expression = compileExpression(written.when.text);
  const rule: Rule = {
    id: written.id,
    effect: written.effect,
    message: written.message,
    obligations: written.obligations,
    appliesTo: compileToolPatterns(written.tools.map((tool) => tool.text)),
    evaluate: expression.ok ? expression.expression : () => ({ kind: "no_match" }),
  };
  const problems = unknownTools(written.tools, lookup);
  if (!expression.ok)
    problems.push({ line: written.when.line + expression.line, message: `when: ${expression.message}` });
  else {
    problems.push(...unknownCapabilities(expression.capabilities, written.when.line));
    problems.push(...failingExamples(rule, written, lookup));
  }
  return { rule, problems: problems.map((problem) => ({ ...problem, ruleId: written.id })) };
}

// A misspelt name would make a rule that never matches. Announced tools ("service:tool") are known to devices only.
function unknownTools(tools: readonly Written[], lookup: ToolLookup): PolicyProblem[] {
  return tools
    .filter(({ text }) => !text.endsWith("*") && !text.includes(":") && lookup(text) === undefined)
    .map(({ text, line }) => ({ line, message: unknownName("tool", text, builtInTools.keys()) }));
}

// As with tools: "service:capability" is known to devices only.
function unknownCapabilities(names: readonly { name: string; line: number }[], firstLine: number): PolicyProblem[] {
  return names
    .filter(({ name }) => !name.includes(":") && !builtInCapabilities.has(name))
    .map(({ name, line }) => ({
      line: firstLine + line,
      message: `when: ${unknownName("capability", name, builtInCapabilities.keys())}`,
    }));
}

function unknownName(kind: string, name: string, known: Iterable<string>): string {
  const nearest = nearestName(name, known);
  return `no built-in ${kind} is named "${name}"${nearest === undefined ? "" : `; did you mean "${nearest}"?`}`;
}

function failingExamples(rule: Rule, written: RuleText, lookup: ToolLookup): PolicyProblem[] {
  const matches = written.match.map((example) => exampleProblem(rule, example, "match", lookup));
  const others = written.noMatch.map((example) => exampleProblem(rule, example, "no_match", lookup));
  return [...matches, ...others].filter((problem) => problem !== undefined);
}

function exampleProblem(
  rule: Rule,
  example: ExampleText,
  expected: "match" | "no_match",
  lookup: ToolLookup,
): PolicyProblem | undefined {
  const completed = completeExample(example.value, lookup);
  if (!completed.ok) return { line: example.line, message: `${expected}: ${completed.message}` };
  const { request, args } = completed;
  const name = request.tool?.name ?? "";
  const command = analyzeCall(lookup(name)?.inputSchema ?? {}, args, {
    roots: request.device?.roots ?? [],
    platform: request.device?.platform,
  });
  const verdict = rule.appliesTo(name) ? rule.evaluate(factsOf(request, args, command)) : { kind: "no_match" as const };
  if (verdict.kind === expected) return undefined;
  return { line: example.line, message: `the example should be a ${expected}, but ${foundIn(verdict)}` };
}

function foundIn(verdict: Verdict): string {
  if (verdict.kind === "error") return `it fails: ${verdict.message}`;
  return verdict.kind === "over_limit" ? "it costs more than a rule may" : `it is a ${verdict.kind}`;
}
