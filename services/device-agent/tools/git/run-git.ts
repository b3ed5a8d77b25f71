import { type Finished, programFailed, runProgram } from "../outcome.ts";
import type { ToolContext } from "../tool.ts";

/** How the git tools are set up. */
export interface GitOptions {
  /** Also allow repositories on this machine's disk. Default false: only https and ssh. */
  allowFileProtocol?: boolean;
  /** Variables that git gets besides the whitelist, such as SSH_AUTH_SOCK. Default none. */
  env?: Readonly<Record<string, string>>;
}

export interface GitRun {
  args: readonly string[];
  /** The folder to run in. */
  cwd: string;
  stdin?: string;
  env?: Readonly<Record<string, string>>;
  /** Whether it may talk to a remote. Default false: what a partial clone lacks is not fetched either. */
  talks?: boolean;
  /** Show the output live. Default false: most runs only ask git something. */
  live?: boolean;
  /** How much of its output is kept, in bytes. Default that of the executor. */
  maxOutputBytes?: number;
}

export type Git = (context: ToolContext, run: GitRun) => Promise<Finished>;

/**
 * What every run of git gets. The owner's own configuration stays, because it holds the identity and the credentials;
 * what a repository could make git run is turned off, and checkRepository refuses the rest.
 */
const PROFILE: readonly string[] = [
  "core.hooksPath=/dev/null",
  "core.fsmonitor=false",
  "core.pager=cat",
  "core.askPass=",
  "diff.external=",
  "log.showSignature=false",
  "protocol.ext.allow=never",
  "submodule.recurse=false",
  "gc.auto=0",
  "maintenance.auto=false",
  "user.useConfigOnly=true",
  "advice.detachedHead=false",
].flatMap((setting) => ["-c", setting]);

/** Runs git without pager, prompt, hooks, file monitor or background work; over https and ssh only, where it may talk at all. */
export function createGit(options: GitOptions): Git {
  const environment = {
    GIT_TERMINAL_PROMPT: "0",
    GIT_OPTIONAL_LOCKS: "0",
    GIT_PAGER: "cat",
    GIT_EDITOR: "false",
    SSH_ASKPASS_REQUIRE: "never",
    ...options.env,
  };
  const protocols = options.allowFileProtocol ? "https:ssh:file" : "https:ssh";
  return (context, { args, env, talks = false, live = false, ...run }) => {
    const toolEnv = { ...environment, GIT_ALLOW_PROTOCOL: talks ? protocols : "none", ...env };
    return runProgram(context, { ...run, live, argv: ["git", ...PROFILE, ...args], toolEnv });
  };
}

/** Output of a run that must succeed, without the last newline. Fault: TOOL_FAILED in git's words. */
export async function gitOutput(git: Git, context: ToolContext, run: GitRun): Promise<string> {
  return (await gitSuccess(git, context, run)).stdout.trimEnd();
}

/** The same with all of what it printed, and whether that was cut. */
export async function gitSuccess(git: Git, context: ToolContext, run: GitRun): Promise<Finished> {
  const finished = await git(context, run);
  if (finished.exitCode !== 0) throw programFailed("git", finished);
  return finished;
}

/** The first line of a run, or "" where git has no answer. */
export async function gitAnswer(git: Git, context: ToolContext, run: GitRun): Promise<string> {
  const { exitCode, stdout } = await git(context, run);
  return exitCode === 0 ? (stdout.split("\n")[0] ?? "") : "";
}
