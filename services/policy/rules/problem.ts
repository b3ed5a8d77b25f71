import type { YamlProblem } from "../../../lib/yaml/yaml-reader.ts";

/** One thing that is wrong with a policy file. */
export interface PolicyProblem extends YamlProblem {
  ruleId?: string;
}

/** A problem in one line, such as `line 12, rule "exec/inspect": unknown variable: arg`. */
export function problemText(problem: PolicyProblem): string {
  const rule = problem.ruleId === undefined ? "" : `, rule "${problem.ruleId}"`;
  return `line ${problem.line}${rule}: ${problem.message}`;
}
