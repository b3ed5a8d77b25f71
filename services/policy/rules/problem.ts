/** One thing that is wrong with a policy file. */
export interface PolicyProblem {
  /** The line in the file, from 1. */
  line: number;
  ruleId?: string;
  /** What is wrong and, where it helps, what would be right. */
  message: string;
}

/** A problem in one line, such as `line 12, rule "exec/inspect": unknown variable: arg`. */
export function problemText(problem: PolicyProblem): string {
  const rule = problem.ruleId === undefined ? "" : `, rule "${problem.ruleId}"`;
  return `line ${problem.line}${rule}: ${problem.message}`;
}
