import type { Command } from "commander";
import { GetPolicyResponseSchema } from "../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { roleNames } from "../../lib/auth/roles.ts";
import { callUsage, withToolWords } from "../call/run-options.ts";
import type { CommandContext } from "../command-context.ts";
import { withConnection, withSession } from "../connection-options.ts";
import { withJson } from "../list-options.ts";
import type { ExplainFlags } from "../policy/explain.ts";
import { safeFor, visible } from "../print/escape.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";
import { timeText } from "../print/time.ts";
import type { TargetFlags } from "../target.ts";

interface JsonFlag {
  json?: true;
}

/** Registers `reeve policy` with check, explain and show. */
export function registerPolicy(program: Command, context: CommandContext): void {
  const policy = program.command("policy").description("Check, explain and show policy.");
  withJson(policy.command("check").argument("<file>", "the policy file"))
    .description("Check a policy file as it would be checked when loaded, its examples too. Exit code 2 on problems.")
    .action(async (file: string, flags: JsonFlag) =>
      (await import("../policy/check.ts")).check(file, flags.json === true, context),
    );
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

async function show(flags: TargetFlags & JsonFlag, context: CommandContext): Promise<void> {
  const policy = await withSession(context, flags, (session) => session.policy.getPolicy({}));
  if (flags.json) return void context.stdout.write(jsonDocument(wholeJson(GetPolicyResponseSchema, policy)));
  context.stderr.write(`reeve: version ${policy.version}, loaded ${timeText(policy.loadTime)}\n`);
  if (policy.refused !== "") context.stderr.write(`reeve: a newer file was refused: ${visible(policy.refused)}\n`);
  context.stdout.write(safeFor(context.stdout, policy.text.endsWith("\n") ? policy.text : `${policy.text}\n`));
}
