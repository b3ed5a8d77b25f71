import { commandsOf, type Plan, type PlanCommand } from "../../../../lib/command/plan/plan.ts";
import { type Finished, runProgram } from "../outcome.ts";
import type { ToolContext } from "../tool.ts";
import { checkSettings, GIT_ENVIRONMENT } from "./git-profile.ts";
import { planScript } from "./script.ts";

/** Where a plan runs. */
export interface PlanPlace {
  /** The folder, which is held. */
  cwd: string;
  timeoutMs: number;
}

/**
 * Runs the plan of a shell text: the programs that it names with its arguments, joined as it says, in one sandbox that shows the
 * roots and lets nothing be written. Faults: those of runProgram; SANDBOX_UNAVAILABLE{required} on a device without one, and
 * TOOL_FAILED{program,setting} for git in a repository that may make it run something; nothing of the plan ran then.
 */
export async function runPlan(context: ToolContext, plan: Plan, place: PlanPlace): Promise<Finished> {
  const toolEnv = await environmentOf(context, commandsOf(plan), place.cwd);
  // It joins the programs; what it reads is made from the plan, never the caller's text.
  const argv = ["bash", "--noprofile", "--norc", "-c", "--", planScript(plan)];
  return await runProgram(context, { ...place, argv, toolEnv, isolation: "read_only" });
}

/** The same for the plan of an argument list, which is one program: it is started as it is. */
export async function runPlannedProgram(
  context: ToolContext,
  plan: Plan,
  { stdin, ...place }: PlanPlace & { stdin: string },
): Promise<Finished> {
  const [command, ...others] = commandsOf(plan);
  if (command === undefined || others.length > 0) throw new TypeError("the plan of an argument list has one command");
  const toolEnv = await environmentOf(context, [command], place.cwd);
  const argv = [command.exe, ...command.argv.slice(1).map(textOf)];
  return await runProgram(context, { ...place, argv, stdin, toolEnv, isolation: "read_only" });
}

/** What the programs get besides the usual environment. What git would run is looked for before anything runs. */
async function environmentOf(
  context: ToolContext,
  commands: readonly PlanCommand[],
  cwd: string,
): Promise<Readonly<Record<string, string>>> {
  const git = commands.find(({ profile }) => profile === "git_readonly");
  if (git === undefined) return {};
  await checkSettings(context, git.exe, cwd);
  return GIT_ENVIRONMENT;
}

function textOf(word: PlanCommand["argv"][number]): string {
  if (typeof word === "string") return word;
  throw new TypeError("an argument list has no patterns");
}
