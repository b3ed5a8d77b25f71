import { readFile } from "node:fs/promises";
import { checkPolicyFile } from "../../services/policy/rules/load-policy.ts";
import { problemText } from "../../services/policy/rules/problem.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { ExitCode } from "../exit-codes.ts";
import { visibleLine } from "../print/escape.ts";
import { jsonDocument } from "../print/json.ts";

/** `reeve policy check`: reads a policy file as policy does, and prints what is wrong with it. */
export async function check(file: string, json: boolean, context: CommandContext): Promise<void> {
  const result = checkPolicyFile(await readText(file));
  if (!result.ok) context.setExitCode(ExitCode.USAGE);
  if (json) return void context.stdout.write(jsonDocument(result.ok ? { ...result } : problemsJson(result)));
  if (result.ok) {
    const { rules, examples, version } = result;
    context.stdout.write(`${file}: ${rules} rules hold, and so do ${examples} examples (version ${version})\n`);
    return;
  }
  for (const problem of result.problems)
    context.stderr.write(`reeve: ${visibleLine(`${file}: ${problemText(problem)}`)}\n`);
}

function problemsJson({
  ok,
  problems,
}: {
  ok: false;
  problems: readonly { line: number; ruleId?: string; message: string }[];
}) {
  return { ok, problems: problems.map(({ line, ruleId, message }) => ({ line, ruleId: ruleId ?? null, message })) };
}

async function readText(file: string): Promise<string> {
  try {
    return await readFile(file, "utf8");
  } catch (error: unknown) {
    throw new UsageError(`${file} cannot be read`, [], { cause: error });
  }
}
