import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { Effect, EffectSchema } from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { type ExplainResponse, ExplainResponseSchema } from "../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { roleFromName, roleNames } from "../../lib/auth/roles.ts";
import { findTool } from "../call/find-tool.ts";
import { readInput } from "../call/input.ts";
import { callUsage, splitWords, type ToolFlags } from "../call/run-options.ts";
import type { CommandContext } from "../command-context.ts";
import { withSession } from "../connection-options.ts";
import { UsageError } from "../errors/usage-error.ts";
import { enumName } from "../print/enum-name.ts";
import { visible } from "../print/escape.ts";
import { jsonDocument, wholeJson } from "../print/json.ts";
import { type Style, styleFor } from "../print/style.ts";
import { table } from "../print/table.ts";
import { presentDevice, questionAbout } from "./question.ts";

/** The options of `reeve policy explain`. */
export interface ExplainFlags extends ToolFlags {
  asRole?: string;
  asId?: string;
}

/** Says what policy would decide about one call. */
export async function explain(words: readonly string[], flags: ExplainFlags, context: CommandContext): Promise<void> {
  const answer = await ask(words, flags, context);
  if (flags.json) context.stdout.write(jsonDocument(wholeJson(ExplainResponseSchema, answer)));
  else context.stdout.write(explanation(answer, styleFor(context, context.stdout)));
}

function ask(words: readonly string[], flags: ExplainFlags, context: CommandContext): Promise<ExplainResponse> {
  const { device: name, tool: toolName, rest } = splitWords(words, false);
  if (name === undefined || toolName === undefined)
    throw new UsageError("DEVICE and TOOL are needed", [`usage: reeve policy explain ${callUsage}`]);
  return withSession(context, flags, async ({ registry, policy }) => {
    const { device } = await registry.getDevice({ device: name });
    const tool = await findTool(registry, name, toolName);
    const params = await readInput({ input: flags.input, rest }, tool, context);
    const request = questionAbout({
      device: presentDevice(device, name),
      tool,
      params,
      principalId: flags.asId ?? "explain",
      role: roleOf(flags.asRole),
      purpose: flags.purpose ?? "",
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
  const rows = rules.map((rule) => [
    rule.matched ? "yes" : "",
    rule.ruleId,
    enumName(EffectSchema, rule.effect),
    rule.error,
  ]);
  const paint = (text: string, column: number) =>
    column === 0 ? style.green(text) : column === 3 ? style.red(text) : text;
  return [
    `${style.bold(paintEffect(effect, style))}: ${visible(message)}\n`,
    `by policy ${policyVersion}\n\n`,
    table(["MATCHED", "RULE", "EFFECT", "ERROR"], rows, { style, paint }),
  ].join("");
}

function paintEffect(effect: Effect, style: Style): string {
  const name = enumName(EffectSchema, effect);
  if (effect === Effect.ALLOW) return style.green(name);
  return effect === Effect.HOLD ? style.yellow(name) : style.red(name);
}
