import { runTool } from "../run-tool.ts";

/** How one step of the check ended. */
export type StepResult =
  | { kind: "passed" }
  /** It could not be done here, and that is no fault of the tree. */
  | { kind: "skipped"; why: string }
  /** What is wrong, as text to print. */
  | { kind: "failed"; output: string };

/** One step of the check. */
export interface Step {
  /** What it checks, in a few words. */
  name: string;
  /** Runs it. A rejection counts as failed. */
  run(): Promise<StepResult>;
}

/** A step that is one run of a tool: it passes where the tool's exit code is 0. */
export function toolStep(name: string, program: string, args: readonly string[]): Step {
  return { name, run: () => toolResult(program, args) };
}

/** A step that looks for things that are wrong: it passes where there are none. */
export function findingsStep(name: string, find: () => Promise<string[]>): Step {
  return { name, run: async () => findingsResult(await find()) };
}

/** Runs a tool as a step. */
export async function toolResult(program: string, args: readonly string[], cwd?: string): Promise<StepResult> {
  const { code, output } = await runTool(program, args, cwd);
  return code === 0 ? { kind: "passed" } : { kind: "failed", output: output.trim() };
}

/** Passed where nothing was found. */
export function findingsResult(findings: readonly string[]): StepResult {
  return findings.length === 0 ? { kind: "passed" } : { kind: "failed", output: findings.join("\n") };
}
