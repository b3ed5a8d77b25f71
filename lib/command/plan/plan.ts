/**
 * What an analyzed command would execute: programs by absolute path with their arguments, joined as written. It is run
 * as it stands, never by a shell.
 */
export interface Plan {
  v: 1;
  items: readonly PlanItem[];
}

/** One part of a plan. It runs always (";"), or where the part before it succeeded ("&&") or failed ("||"). */
export type PlanItem = PlanPipe | PlanFolder;

export interface PlanPipe {
  op: PlanOperator;
  /** The commands, each reading what the one before it prints. */
  pipe: readonly PlanCommand[];
}

/** Changes the folder that the rest runs in. */
export interface PlanFolder {
  op: PlanOperator;
  cd: PlanWord;
}

export type PlanOperator = ";" | "&&" | "||";

export interface PlanCommand {
  /** The absolute path of the program. */
  exe: string;
  /** Its arguments, its own name first. */
  argv: readonly PlanWord[];
  redir: readonly PlanRedirect[];
  /** True where only a sandbox makes it harmless: it runs other programs, or reads settings that name some. */
  sandbox: "optional" | "required";
  /** The environment that it gets beside the usual one. */
  profile?: "git_readonly";
}

/** A text; a pattern of names, quoted with "\"; or a path below the home folder. */
export type PlanWord = string | { glob: string } | { home: string };

/** A descriptor and where it goes: another descriptor, nowhere, or, for the standard input, a file or a text. */
export type PlanRedirect =
  | readonly [fd: number, to: number | "null"]
  | readonly [fd: 0, from: "file", path: PlanWord]
  | readonly [fd: 0, from: "text", text: string];

/** The commands of a plan, in their order. */
export function commandsOf(plan: Plan): PlanCommand[] {
  return plan.items.flatMap((item) => ("pipe" in item ? [...item.pipe] : []));
}
