import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import { requireKnownSettings } from "../git/check-repository.ts";
import { programFailed, runProgram } from "../outcome.ts";
import type { ToolContext } from "../tool.ts";

/**
 * What git gets in a plan, beside the options that the plan has: no settings but the repository's, no locks, prompts, pager,
 * editor, and no address to talk to. Without the owner's settings neither a filter such as that of git-lfs runs, nor is a
 * repository of another user trusted.
 */
export const GIT_ENVIRONMENT: Readonly<Record<string, string>> = {
  GIT_CONFIG_NOSYSTEM: "1",
  GIT_CONFIG_GLOBAL: "/dev/null",
  GIT_OPTIONAL_LOCKS: "0",
  GIT_TERMINAL_PROMPT: "0",
  GIT_PAGER: "cat",
  GIT_EDITOR: "false",
  GIT_NO_LAZY_FETCH: "1",
  GIT_ALLOW_PROTOCOL: "none",
};

/**
 * Checks, in the sandbox, that the repository which git would find from this folder has no setting that may make git run a
 * program: the names of filters are the repository's to choose, so no option can switch them off. Listing settings runs nothing.
 * Faults: TOOL_FAILED{program,setting}; TOOL_FAILED in git's words.
 */
export async function checkSettings(context: ToolContext, git: string, cwd: string): Promise<void> {
  const argv = [git, "config", "--list", "--name-only", "--show-scope", "-z"];
  const listed = await runProgram(context, {
    argv,
    cwd,
    isolation: "read_only",
    toolEnv: GIT_ENVIRONMENT,
    live: false,
  });
  if (listed.exitCode !== 0) throw programFailed("git", listed);
  if (listed.truncated) {
    const message = "the repository has more settings than can be looked at";
    throw fault(ErrorReason.TOOL_FAILED, { program: "git", setting: "" }, { message });
  }
  requireKnownSettings(listed.stdout, "the repository's .git/config");
}
