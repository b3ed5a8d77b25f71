import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { type ExplainResponse, ExplainResponseSchema } from "../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { roleFromName, roleNames } from "../../lib/auth/roles.ts";
import { type CallWords, readCallWords, takenNames } from "../call/call-words.ts";
import { findTool } from "../call/find-tool.ts";
import { readInput } from "../call/input.ts";
import type { CommandContext } from "../command-context.ts";
import { withSession } from "../connection-options.ts";
import { UsageError } from "../errors/usage-error.ts";
import { visible } from "../print/escape.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";
import { type Style, styleFor } from "../print/style.ts";
import { table } from "../print/table.ts";
import { presentDevice, questionAbout } from "./question.ts";

/** How `reeve policy explain` is typed. */
export const explainUsage = "DEVICE TOOL [--flag VALUE ...] [--as-role ROLE] [--as-id ID]";

/** What its help says besides. */
export const explainHelp = `
Says what policy would decide about a call, and why. Nothing is recorded, nothing is granted, nothing runs.
The call is typed as for \`reeve call\`: with the tool's flags, or --json '{…}' | - | @file.

Options:
  --as-role ROLE    who would ask: ${roleNames.join(", ")}. Default agent
  --as-id ID        the asker's id. Default "explain"
  --purpose TEXT    why it would be wanted
  --json            print one JSON document
`;

const EXTRA = ["as-role", "as-id"];

/** Explains one call. */
export async function explain(argv: readonly string[], context: CommandContext): Promise<void> {
  context.setErrorFormat("text");
  const words = readCallWords(argv, EXTRA);
  context.setErrorFormat(words.output);
  if (words.help) return void context.stdout.write(`Usage: reeve policy explain ${explainUsage}\n${explainHelp}`);
  const answer = await ask(words, context);
  if (words.output === "json") context.stdout.write(jsonDocument(wholeJson(ExplainResponseSchema, answer)));
  else context.stdout.write(explanation(answer, styleFor(context, context.stdout)));
}

function ask(words: CallWords, context: CommandContext): Promise<ExplainResponse> {
  const { device: name, tool: toolName } = words;
  if (name === undefined || toolName === undefined)
    throw new UsageError("DEVICE and TOOL are needed", [`usage: reeve policy explain ${explainUsage}`]);
  return withSession(context, words.target, async ({ registry, policy }) => {
    const { device } = await registry.getDevice({ device: name });
    const tool = await findTool(registry, name, toolName);
    const params = await readInput(words, tool, context, takenNames(EXTRA));
    const request = questionAbout({
      device: presentDevice(device, name),
      tool,
      params,
      principalId: words.extra.get("as-id") ?? "explain",
      role: roleOf(words.extra.get("as-role")),
      purpose: words.purpose ?? "",
      now: context.now(),
    });
    return policy.explain({ request });
  });
}

function roleOf(name: string | undefined): Role {
  if (name === undefined) return Role.AGENT;
  const role = roleFromName(name);
  if (role !== undefined) return role;
  throw new UsageError(`--as-role: ${JSON.stringify(name)} is none of: ${roleNames.join(", ")}`);
}

function explanation({ effect, message, rules, policyVersion }: ExplainResponse, style: Style): string {
  const rows = rules.map((rule) => [rule.matched ? "yes" : "", rule.ruleId, rule.effect, rule.error]);
  const paint = (text: string, column: number) =>
    column === 0 ? style.green(text) : column === 3 ? style.red(text) : text;
  return [
    `${style.bold(paintEffect(effect, style))}: ${visible(message)}\n`,
    `by policy ${policyVersion}\n\n`,
    table(["MATCHED", "RULE", "EFFECT", "ERROR"], rows, { style, paint }),
  ].join("");
}

function paintEffect(effect: string, style: Style): string {
  if (effect === "allow") return style.green(effect);
  return effect === "hold" ? style.yellow(effect) : style.red(effect);
}
