import type { Plan, PlanCommand, PlanRedirect, PlanWord } from "../../../../lib/command/plan/plan.ts";
import { shellWord } from "../../../../lib/programs/shell-word.ts";

/**
 * The script by which bash joins the programs of a plan, as the text that it was made from would have. Nothing of the plan is left
 * for bash to read in its own way: programs are absolute paths behind `exec`, so that no builtin, function or alias takes their
 * place; every word is quoted; in a pattern only the characters of patterns are not. Pure. Throws where the plan holds a word that
 * is not known here.
 */
export function planScript(plan: Plan): string {
  return plan.items
    .map((item, at) => {
      const lead = at === 0 ? "" : item.op === ";" ? "; " : ` ${item.op} `;
      return `${lead}${"cd" in item ? `cd -- ${wordOf(item.cd)}` : item.pipe.map(commandOf).join(" | ")}`;
    })
    .join("");
}

/** A command keeps its own name, which it puts before its messages. */
function commandOf({ exe, argv: [name = exe, ...words], redir }: PlanCommand): string {
  return `(exec -a ${[name, exe, ...words].map(wordOf).join(" ")}${redir.map(redirectOf).join("")})`;
}

function redirectOf(redirect: PlanRedirect): string {
  if (redirect[1] === "file") return ` <${wordOf(redirect[2])}`;
  if (redirect[1] === "text") return inputOf(redirect[2]);
  const [fd, to] = redirect;
  return to === "null" ? ` ${fd}>/dev/null` : ` ${fd}>&${to}`;
}

/** A here-string adds the last line end. */
function inputOf(text: string): string {
  if (text === "") return " </dev/null";
  if (!text.endsWith("\n")) throw new TypeError("a plan's input does not end with a line end");
  return ` <<<${shellWord(text.slice(0, -1))}`;
}

function wordOf(word: PlanWord): string {
  if (typeof word === "string") return shellWord(word);
  // Where the home folder is, no analysis for a device knows, and so none allows it.
  if ("home" in word) throw new TypeError("a plan names the home folder");
  return patternOf(word.glob);
}

/**
 * A pattern as bash reads it. Characters of patterns stand bare, and those that mean the same with and without quotes; what is
 * escaped, and every other character, is quoted.
 */
function patternOf(pattern: string): string {
  let text = "";
  let isEscaped = false;
  // By code points: half of one is no character that could be quoted.
  for (const char of pattern) {
    if (isEscaped || !/[\w./:*?[\]!^\\-]/.test(char)) text += shellWord(char);
    else if (char !== "\\") text += char;
    isEscaped = !isEscaped && char === "\\";
  }
  return text;
}
