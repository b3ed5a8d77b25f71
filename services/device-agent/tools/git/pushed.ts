import { invalidField } from "../../../../lib/fault/invalid-input.ts";
import type { ToolContext } from "../tool.ts";
import { type Git, gitAnswer, gitOutput } from "./run-git.ts";

/** A branch and the commit that it stands for. */
export interface PushedBranch {
  name: string;
  commit: string;
}

/** What a push sends: the branch that is named, or the one that is checked out. Fault: INVALID_INPUT where there is none. */
export async function branchToPush(git: Git, context: ToolContext, cwd: string, branch: string): Promise<PushedBranch> {
  const name = branch || (await gitAnswer(git, context, { args: ["symbolic-ref", "--short", "-q", "HEAD"], cwd }));
  if (name === "") {
    const message = "no branch is checked out: name the branch to push";
    throw invalidField("branch", "detached", message, { text: message });
  }
  const args = ["rev-parse", "--verify", "--end-of-options", `refs/heads/${name}^{commit}`];
  return { name, commit: await gitOutput(git, context, { args, cwd }) };
}
