import { readFile } from "node:fs/promises";
import type { Command } from "commander";
import { GetPolicyResponseSchema } from "../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { roleNames } from "../../lib/auth/roles.ts";
import { callUsage, withToolWords } from "../call/run-options.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withSession } from "../connection-options.ts";
import { UsageError } from "../errors/usage-error.ts";
import { ExitCode } from "../exit-codes.ts";
import { withJson } from "../list-options.ts";
import type { ExplainFlags } from "../policy/explain.ts";
import { safeFor, visible, visibleLine } from "../print/escape.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";
import { timeText } from "../print/time.ts";
import type { TargetFlags } from "../target.ts";

interface JsonFlag {
  json?: true;
}

/** Registers `reeve serve policy` with check, explain and show. */
export function registerPolicy(program: Command, context: CommandContext): void {
  const policy = program.command("policy").description("Check, explain and show policy.");
  withJson(policy.command("check").argument("<file>", "the policy file"))
    .description("Check a policy file as it would be checked when loaded, its examples too. Exit code 2 on problems.")
    .action((file: string, flags: JsonFlag) => check(file, flags, context));
  const explaining = withConnection(withJson(withToolWords(policy.command("explain"))))
    .usage(callUsage)
    .description(
      "Say what policy would decide about a call, and why. Nothing is recorded, nothing is granted, nothing runs.\n" +
        "The call is typed as for `reeve call`.",
    )
    .option("--as-role <role>", `who would ask: ${roleNames.join(", ")}. Default agent`)
    .option("--as-id <id>", "the caller's id. Default explain");
  explaining.action(async (words: string[], flags: ExplainFlags) => {
    if (flags.help) return explaining.outputHelp();
    await (await import("../policy/explain.ts")).explain(words, flags, context);
  });
  withJson(withConnection(policy.command("show").description("Print the active policy."))).action(
    (flags: TargetFlags & JsonFlag) => show(flags, context),
  );
}

async function check(file: string, flags: JsonFlag, context: CommandContext): Promise<void> {
  const { checkPolicyFile } = await import("../../services/policy/rules/load-policy.ts");
  const result = checkPolicyFile(await readText(file));
  if (!result.ok) context.setExitCode(ExitCode.USAGE);
  if (flags.json) return void context.stdout.write(jsonDocument(result.ok ? { ...result } : problemsJson(result)));
  if (result.ok) {
    const { rules, examples, version } = result;
    context.stdout.write(`${file}: ${rules} rules hold, and so do ${examples} examples (version ${version})\n`);
    return;
  }
  const { problemText } = await import("../../services/policy/rules/problem.ts");
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

async function show(flags: TargetFlags & JsonFlag, context: CommandContext): Promise<void> {
  const policy = await withSession(context, flags, (session) => session.policy.getPolicy({}));
  if (flags.json) return void context.stdout.write(jsonDocument(wholeJson(GetPolicyResponseSchema, policy)));
  context.stderr.write(`reeve: version ${policy.version}, loaded ${timeText(policy.loadTime)}\n`);
  if (policy.refused !== "") context.stderr.write(`reeve: a newer file was refused: ${visible(policy.refused)}\n`);
  context.stdout.write(safeFor(context.stdout, policy.text.endsWith("\n") ? policy.text : `${policy.text}\n`));
}
