import type { JsonObject } from "@bufbuild/protobuf";
import type { CallAnalysis } from "../../../lib/command/call.ts";
import { planLines } from "../../../lib/command/plan/show.ts";
import { commandsIn } from "../../../lib/tool/commands.ts";
import type { JsonSchema } from "../../../lib/tool/json-schema.ts";
import { escapeInvisible } from "./escape-invisible.ts";

/** How much of one reason is shown, in UTF-16 code units: it may quote a word of the command, which stands above it. */
const REASON_LIMIT = 300;

/** The longest plan that is shown, in UTF-16 code units. */
const PLAN_LIMIT = 8192;

/**
 * What the analysis says of a call's commands, for its approver: the verdict with its reasons, or the plan that a text comes to.
 * Empty for a call without commands. Nothing of a command is repeated that its schema marks as a secret. Pure.
 *
 * @param shown the arguments without their secrets.
 */
export function analysisLines(
  { verdict, reasons, plan }: CallAnalysis,
  args: JsonObject,
  shown: JsonObject | undefined,
  schema: JsonSchema = {},
): string[] {
  if (verdict === "none") return [];
  if (shown === undefined || wordsIn(schema, shown) !== wordsIn(schema, args)) return [`Analysis:  ${verdict}`];
  if (plan !== undefined) return [`Analysis:  ${verdict}: it only looks. It comes to`, ...planText(plan)];
  return reasons.map(({ rule, message }) => {
    const said = message.length > REASON_LIMIT ? `${message.slice(0, REASON_LIMIT)} …` : message;
    return `Analysis:  ${verdict}: it ${escapeInvisible(said)} (${rule})`;
  });
}

function planText(plan: NonNullable<CallAnalysis["plan"]>): string[] {
  const lines = planLines(plan, escapeInvisible).map((line) => `  ${line}`);
  return lines.join("\n").length > PLAN_LIMIT ? ["  [a plan that is too long to be shown here]"] : lines;
}

/** What would run, without its surroundings. */
function wordsIn(schema: JsonSchema, args: JsonObject): string {
  const words = commandsIn(schema, args).map(({ argv, foreign_argv: foreign, shell }) => [argv, foreign, shell]);
  return JSON.stringify(words);
}
