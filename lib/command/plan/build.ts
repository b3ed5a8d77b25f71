import type { Command, ParsedScript, Redirection, Statement } from "unbash";
import type { PlanOperator, PlanRedirect, PlanWord } from "./plan.ts";
import { planWords } from "./words.ts";

/** A script of simple commands, each with its words and redirections, before any of them is looked up. */
export type Draft = { ok: true; items: DraftItem[] } | { ok: false; why: string };

export interface DraftItem {
  op: PlanOperator;
  pipe: DraftCommand[];
}

export interface DraftCommand {
  words: PlanWord[];
  redir: PlanRedirect[];
}

/** Leaves the walk with why a text is no plan. */
class NoPlan extends Error {}

/** Reads a script as a list of pipes of simple commands. Whatever else stands in it makes it no plan. */
export function draftOf(script: ParsedScript): Draft {
  try {
    return { ok: true, items: script.commands.flatMap(itemsOf) };
  } catch (e: unknown) {
    if (e instanceof NoPlan) return { ok: false, why: e.message };
    throw e;
  }
}

function itemsOf({ command, background }: Statement): DraftItem[] {
  if (background === true) throw new NoPlan("runs something in the background");
  if (command.type !== "AndOr") return [{ op: ";", pipe: pipeOf(command) }];
  return command.commands.map((each, at) => ({
    op: at === 0 ? ";" : (command.operators[at - 1] ?? ";"),
    pipe: pipeOf(each),
  }));
}

function pipeOf(node: Statement["command"]): DraftCommand[] {
  if (node.type === "Command") return [commandOf(node)];
  if (node.type !== "Pipeline") throw new NoPlan(`uses ${NAMES.get(node.type) ?? "a compound command"}`);
  if (node.prefixes.length > 0) throw new NoPlan('uses "!" or "time"');
  if (node.operators.some((operator) => operator !== "|")) throw new NoPlan('uses "|&"');
  return node.commands.map((each) => {
    if (each.type !== "Command") throw new NoPlan(`uses ${NAMES.get(each.type) ?? "a compound command"}`);
    return commandOf(each);
  });
}

const NAMES: ReadonlyMap<string, string> = new Map([
  ["If", '"if"'],
  ["For", '"for"'],
  ["ArithmeticFor", '"for"'],
  ["While", '"while"'],
  ["Case", '"case"'],
  ["Select", '"select"'],
  ["Subshell", "a subshell"],
  ["BraceGroup", "a group"],
  ["Function", "a function"],
  ["Coproc", '"coproc"'],
  ["TestCommand", '"[["'],
  ["ArithmeticCommand", "arithmetic"],
]);

function commandOf(command: Command): DraftCommand {
  if (command.prefix.some((part) => part.type === "Assignment")) throw new NoPlan("sets a variable");
  if (command.name === undefined) throw new NoPlan("has a redirection without a command");
  const words: PlanWord[] = [];
  for (const word of [command.name, ...command.args]) {
    if (word.type !== "Word") throw new NoPlan("sets a variable");
    const read = planWords(word);
    if (!read.ok) throw new NoPlan(read.why);
    words.push(...read.words);
  }
  return { words, redir: command.redirects.flatMap(redirectOf) };
}

function redirectOf(redirect: Redirection): PlanRedirect[] {
  const { descriptor } = redirect;
  if (descriptor?.type === "FileDescriptorVariable") throw new NoPlan("opens a descriptor by a variable");
  const fd = descriptor?.value;
  if (redirect.type === "HereDoc") return [[0, "text", hereDocText(redirect, fd)]];
  const target = redirect.target === undefined ? undefined : planWords(redirect.target);
  const [word, ...others] = target?.ok ? target.words : [];
  if (word === undefined || others.length > 0) throw new NoPlan("redirects to what is not known before it runs");
  if (redirect.type === "HereString") {
    if (typeof word !== "string" || (fd ?? 0) !== 0) throw new NoPlan("reads a text that is not known before it runs");
    return [[0, "text", `${word}\n`]];
  }
  return fileRedirect(redirect.operator, fd, word, redirect.target?.text ?? "");
}

function fileRedirect(operator: string, fd: number | undefined, word: PlanWord, written: string): PlanRedirect[] {
  switch (operator) {
    case ">&": {
      // Written without quotes, so that nothing but a descriptor can be meant.
      const from = fd ?? 1;
      const to = Number(written);
      if (/^[12]$/.test(written) && (from === 1 || from === 2)) return [[from, to]];
      throw new NoPlan("redirects to a file or another descriptor");
    }
    case ">":
    case ">>":
    case ">|":
      if (word !== "/dev/null" || (fd !== undefined && fd !== 1 && fd !== 2)) throw new NoPlan("writes to a file");
      return [[fd ?? 1, "null"]];
    case "&>":
    case "&>>":
      if (word !== "/dev/null" || fd !== undefined) throw new NoPlan("writes to a file");
      return [
        [1, "null"],
        [2, "null"],
      ];
    case "<":
      if ((fd ?? 0) !== 0) throw new NoPlan("opens another descriptor");
      return [[0, "file", word]];
    default:
      throw new NoPlan("opens a file for reading and writing, or closes a descriptor");
  }
}

function hereDocText(redirect: Extract<Redirection, { type: "HereDoc" }>, fd: number | undefined): string {
  if (redirect.delimiter?.quoted !== true || redirect.closing === undefined || (fd ?? 0) !== 0) {
    throw new NoPlan("has a here-document that is expanded, open, or for another descriptor");
  }
  if (!/^(?:'[\w-]+'|"[\w-]+"|\\[\w-]+)$/.test(redirect.delimiter.text))
    throw new NoPlan("has an unusual here-document");
  return redirect.operator === "<<-" ? redirect.body.text.replace(/^\t+/gm, "") : redirect.body.text;
}
