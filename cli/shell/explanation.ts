import type { Analysis, Verdict } from "../../lib/command/analyze.ts";
import { planLines } from "../../lib/command/plan/show.ts";
import type { CommandContext } from "../command-context.ts";
import { visibleLine } from "../print/escape.ts";
import { styleFor } from "../print/style.ts";

const MEANINGS: Readonly<Record<Verdict, string>> = {
  allow: "it only looks; the plan below is what would run",
  ask: "a person decides",
  block: "refused, whatever anybody's rights",
  reject: "more than can be looked at; write it shorter, or as a file",
};

/** An analysis for a person. */
export function explanation({ verdict, reasons, plan }: Analysis, context: CommandContext): string {
  const style = styleFor(context, context.stdout);
  const paint = verdict === "allow" ? style.green : verdict === "ask" ? style.yellow : style.red;
  const lines = [`${style.bold(paint(verdict))}: ${MEANINGS[verdict]}`];
  if (verdict !== "allow") lines.push(...reasons.map(({ rule, message }) => `  ${rule}: it ${visibleLine(message)}`));
  if (plan !== undefined) lines.push(...planLines(plan, visibleLine).map((line) => `  ${line}`));
  return `${lines.join("\n")}\n`;
}
