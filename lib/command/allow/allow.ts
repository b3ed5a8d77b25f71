import type { DraftCommand, DraftItem } from "../plan/build.ts";
import { commandsOf, type Plan, type PlanCommand, type PlanItem, type PlanWord } from "../plan/plan.ts";
import { checkProgram } from "./check.ts";
import { type Grammar, grammarOf } from "./grammar.ts";
import { type Place, pathProblem } from "./paths.ts";
import type { ProgramRule } from "./rule.ts";
import { binaryRules } from "./tables/binaries.ts";
import { containerRules } from "./tables/containers.ts";
import { fileRules } from "./tables/files.ts";
import { gitRules } from "./tables/git.ts";
import { hardwareRules } from "./tables/hardware.ts";
import { networkRules } from "./tables/network.ts";
import { packageRules } from "./tables/packages.ts";
import { systemRules } from "./tables/system.ts";
import { textRules } from "./tables/text.ts";

/** Every rule, by family. */
export const PROGRAM_RULES: readonly ProgramRule[] = [
  ...fileRules,
  ...textRules,
  ...binaryRules,
  ...systemRules,
  ...hardwareRules,
  ...networkRules,
  ...gitRules,
  ...containerRules,
  ...packageRules,
];

const SYSTEM_FOLDERS = ["/usr/bin", "/bin", "/usr/sbin", "/sbin"];

interface Entry {
  rule: ProgramRule;
  grammar: Grammar;
}

const ENTRIES: ReadonlyMap<string, Entry> = new Map(
  PROGRAM_RULES.flatMap((rule) => {
    const grammar = grammarOf(rule);
    return rule.program.split(" ").map((name): [string, Entry] => [name, { rule, grammar }]);
  }),
);

/** A plan of which every command is on the list, or why not, with the rules that spoke. */
export type Allowed = { ok: true; plan: Plan; rules: string[] } | { ok: false; why: string; rule: string };

/** Checks a draft against the table of programs. Pure. */
export function allowed(items: readonly DraftItem[], place: Place): Allowed {
  const planned: PlanItem[] = [];
  let cwd = place.cwd;
  let moved = false;
  for (const { op, pipe } of items) {
    const [only] = pipe;
    if (pipe.length === 1 && only?.words[0] === "cd") {
      const target = folderOf(only, { ...place, cwd });
      if (!target.ok) return { ok: false, why: `"cd": ${target.why}`, rule: "command/folder" };
      planned.push({ op, cd: target.word });
      cwd = target.cwd;
      moved = true;
      continue;
    }
    const commands: PlanCommand[] = [];
    for (const draft of pipe) {
      const checked = checkCommand(draft, { ...place, cwd }, moved);
      if (!checked.ok) return checked;
      commands.push(checked.command);
    }
    planned.push({ op, pipe: commands });
  }
  const plan: Plan = { v: 1, items: planned };
  if (commandsOf(plan).length === 0) return { ok: false, why: "runs nothing", rule: "command/empty" };
  return {
    ok: true,
    plan,
    rules: [...new Set(commandsOf(plan).map(({ exe }) => `program/${exe.replace(/^.*\//, "")}`))],
  };
}

type CheckedCommand = { ok: true; command: PlanCommand } | { ok: false; why: string; rule: string };

function checkCommand({ words, redir }: DraftCommand, place: Place, moved: boolean): CheckedCommand {
  const [program, ...rest] = words;
  const name = typeof program === "string" ? program.replace(/^.*\//, "") : "";
  const entry = ENTRIES.get(name);
  const rule = `program/${name}`;
  if (entry === undefined || typeof program !== "string") {
    return {
      ok: false,
      why: `${JSON.stringify(program)} is not a program that runs without being asked about`,
      rule: "command/unknown-program",
    };
  }
  const folders = entry.rule.folders ?? SYSTEM_FOLDERS;
  const written = program.slice(0, -name.length - 1);
  if (program !== name && !folders.includes(written))
    return { ok: false, why: `${JSON.stringify(program)} is not where ${name} belongs`, rule };
  if (moved && entry.rule.profile === "git_readonly")
    return { ok: false, why: "git runs in a folder that the text changes to", rule };
  const checked = checkProgram(entry.grammar, rest, place);
  if (!checked.ok) return { ok: false, why: `${name}: ${checked.why}`, rule };
  for (const redirect of redir) {
    const problem = redirect[1] === "file" ? pathProblem(redirect[2] as PlanWord, "read", place) : undefined;
    if (problem !== undefined) return { ok: false, why: `${name}: ${problem}`, rule };
    if (redirect[1] === "file" && typeof redirect[2] === "object")
      return { ok: false, why: `${name}: reads what is not known before it runs`, rule };
  }
  const { sandbox, profile, forced = [] } = entry.rule;
  const exe = `${program === name ? folders[0] : written}/${name}`;
  const argv: PlanWord[] = [name, ...forced, ...checked.words];
  return { ok: true, command: { exe, argv, redir, sandbox, ...(profile === undefined ? {} : { profile }) } };
}

type Target = { ok: true; word: PlanWord; cwd: string | undefined } | { ok: false; why: string };

function folderOf({ words, redir }: DraftCommand, place: Place): Target {
  const operands = words.slice(1).filter((word, at) => !(at === 0 && word === "--"));
  const [word] = operands;
  if (redir.length > 0 || operands.length !== 1 || word === undefined)
    return { ok: false, why: "its folder is not named" };
  if (typeof word === "object" && "glob" in word) return { ok: false, why: "its folder is a pattern" };
  const text = typeof word === "string" ? word : `~${word.home}`;
  if (text === "" || text.startsWith("-")) return { ok: false, why: "its folder is not named" };
  const problem = pathProblem(word, "name", place);
  if (problem !== undefined) return { ok: false, why: problem };
  const isWhole = text.startsWith("/") || text.startsWith("~") || place.cwd === undefined;
  return { ok: true, word, cwd: isWhole ? text : `${place.cwd}/${text}` };
}
