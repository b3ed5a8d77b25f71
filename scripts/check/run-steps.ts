import type { Step, StepResult } from "./step.ts";

/**
 * Runs the steps one after the other, all of them, and prints a line for each: what it checks, how it ended, how long
 * it took. What a failed step printed comes right after its line. Returns the names of the steps that failed.
 */
export async function runSteps(steps: readonly Step[], print: (line: string) => void): Promise<string[]> {
  const failed: string[] = [];
  for (const step of steps) {
    const started = performance.now();
    const result = await outcome(step);
    const seconds = ((performance.now() - started) / 1000).toFixed(1);
    print(`${result.kind.padEnd(7)}  ${step.name} (${seconds} s)${result.kind === "skipped" ? `: ${result.why}` : ""}`);
    if (result.kind !== "failed") continue;
    print(result.output);
    failed.push(step.name);
  }
  return failed;
}

async function outcome(step: Step): Promise<StepResult> {
  try {
    return await step.run();
  } catch (error: unknown) {
    return { kind: "failed", output: error instanceof Error ? error.message : String(error) };
  }
}
