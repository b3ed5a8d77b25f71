import { subjectOf } from "../../../lib/command/allow/subject.ts";
import type { CallAnalysis } from "../../../lib/command/call.ts";
import { commandsOf } from "../../../lib/command/plan/plan.ts";

/**
 * What rules see of the commands in a call's arguments, as `command`: what their analysis says, which is made from the arguments
 * and the device's roots. All texts are empty and the verdict is "none" for a call that has no command.
 */
export class CommandFacts {
  /** "allow", "ask", "block", "reject" or "none". */
  readonly verdict: string;
  /** The rules of the analysis that spoke, such as "program/find". */
  readonly rules: readonly string[];
  /** Whether only a sandbox makes an allowed command harmless: "required" or "optional"; empty where it is not allowed. */
  readonly sandbox: string;
  /** What an allowed command is about, "files" or "machine"; empty where it is not allowed. */
  readonly subject: string;

  constructor({ verdict, reasons, plan }: CallAnalysis) {
    this.verdict = verdict;
    this.rules = reasons.map(({ rule }) => rule);
    this.sandbox = plan === undefined ? "" : sandboxOf(commandsOf(plan));
    this.subject = plan === undefined ? "" : subjectOf(plan);
  }
}

/** The name of the fact, and its type in the expression language. */
export const COMMAND = {
  fact: "command",
  type: "CommandFacts",
  fields: { verdict: "string", rules: "list<string>", sandbox: "string", subject: "string" },
} as const;

function sandboxOf(commands: readonly { sandbox: string }[]): string {
  return commands.some(({ sandbox }) => sandbox === "required") ? "required" : "optional";
}
