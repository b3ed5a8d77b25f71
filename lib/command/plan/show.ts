import { shellWord } from "../../programs/shell-word.ts";
import type { Plan, PlanCommand, PlanWord } from "./plan.ts";

/**
 * A plan for a person, one line for each of its parts, with words as a shell would take them. Pure.
 *
 * @param visible makes visible what in a word cannot be seen; line breaks too.
 */
export function planLines(plan: Plan, visible: (text: string) => string): string[] {
  return plan.items.map((item, at) => {
    const lead = at === 0 || item.op === ";" ? "" : `${item.op} `;
    if ("cd" in item) return `${lead}cd ${shown(item.cd, visible)}`;
    return `${lead}${item.pipe.map((command) => commandText(command, visible)).join(" | ")}`;
  });
}

function commandText({ exe, argv, redir, sandbox }: PlanCommand, visible: (text: string) => string): string {
  const words = [exe, ...argv.slice(1).map((word) => shown(word, visible))].join(" ");
  const files = redir.map(([fd, to, from]) => {
    if (to === "file") return ` < ${shown(from, visible)}`;
    if (to === "text") return " <<< …";
    return ` ${fd}>${to === "null" ? "/dev/null" : `&${to}`}`;
  });
  return `${words}${files.join("")}${sandbox === "required" ? "   (in a sandbox only)" : ""}`;
}

function shown(word: PlanWord, visible: (text: string) => string): string {
  if (typeof word === "object") return visible("home" in word ? `~${word.home}` : word.glob);
  return /^[\w@%+=:,./-]+$/.test(word) ? word : shellWord(visible(word));
}
