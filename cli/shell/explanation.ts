import type { Analysis, Verdict } from "../../lib/command/analyze.ts";
import type { Plan, PlanCommand, PlanWord } from "../../lib/command/plan/plan.ts";
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
  if (plan !== undefined) lines.push(...planLines(plan));
  return `${lines.join("\n")}\n`;
}

function planLines(plan: Plan): string[] {
  return plan.items.flatMap((item, at) => {
    const lead = at === 0 || item.op === ";" ? "  " : `  ${item.op} `;
    if ("cd" in item) return [`${lead}cd ${shown(item.cd)}`];
    return [`${lead}${item.pipe.map(commandText).join(" | ")}`];
  });
}

function commandText({ exe, argv, redir, sandbox }: PlanCommand): string {
  const words = [exe, ...argv.slice(1).map(shown)].join(" ");
  const files = redir.map(([fd, to, from]) => {
    if (to === "file") return ` < ${shown(from)}`;
    if (to === "text") return " <<< …";
    return ` ${fd}>${to === "null" ? "/dev/null" : `&${to}`}`;
  });
  return `${words}${files.join("")}${sandbox === "required" ? "   (in a sandbox only)" : ""}`;
}

/** A word as a shell would take it. */
function shown(word: PlanWord): string {
  if (typeof word === "object") return visibleLine("home" in word ? `~${word.home}` : word.glob);
  return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${visibleLine(word).replaceAll("'", "'\\''")}'`;
}
