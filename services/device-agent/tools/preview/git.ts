import type { Git as GitService } from "../../../../gen/ts/reeve/tools/v1/git_pb.ts";
import type { PreviewFact } from "../../../../lib/tool/preview.ts";
import { checkRepository } from "../git/check-repository.ts";
import { branchToPush, type PushedBranch } from "../git/pushed.ts";
import { createGit, type Git, type GitOptions, gitAnswer, gitOutput } from "../git/run-git.ts";
import type { ToolContext, ToolPreviews } from "../tool.ts";

const WRITE = { access: "write", field: "path" } as const;

/** A partial clone would fetch what it lacks while it is looked at, from wherever its configuration says. */
const NO_NETWORK = { GIT_ALLOW_PROTOCOL: "none", GIT_NO_LAZY_FETCH: "1" };

/** How many commits are named. */
const NAMED = 50;

/**
 * What a push would send: the remote's address, the branch, and the commits that the remote did not have when this repository last
 * saw it. Nothing is asked of the remote.
 */
export function createGitPreviews(options: GitOptions = {}): ToolPreviews<typeof GitService> {
  const git = createGit({ ...options, env: { ...options.env, ...NO_NETWORK } });
  return {
    async push({ path, remote, branch }, context) {
      using folder = context.roots.openFolder(path, WRITE);
      await checkRepository(git, context, folder, path);
      const cwd = folder.at();
      const name = remote || "origin";
      const url = await gitOutput(git, context, { args: ["remote", "get-url", "--push", "--all", "--", name], cwd });
      const pushed = await branchToPush(git, context, cwd, branch);
      return [
        { name: "remote", value: `${name}: ${withoutPassword(url)}` },
        { name: "branch", value: `${pushed.name} at ${pushed.commit}` },
        ...(await commitsToPush(git, context, { cwd, remote: name, pushed })),
      ];
    },
  };
}

interface Push {
  cwd: string;
  remote: string;
  pushed: PushedBranch;
}

async function commitsToPush(
  git: Git,
  context: ToolContext,
  { cwd, remote, pushed: { name, commit } }: Push,
): Promise<PreviewFact[]> {
  const seen = `refs/remotes/${remote}/${name}`;
  const known = await gitAnswer(git, context, { args: ["rev-parse", "-q", "--verify", `${seen}^{commit}`], cwd });
  const range = known === "" ? [commit, "--not", `--remotes=${remote}`] : [`${known}..${commit}`];
  const count = await gitOutput(git, context, { args: ["rev-list", "--count", ...range], cwd });
  const list = [
    "log",
    "--no-show-signature",
    "--no-color",
    "--no-decorate",
    `--max-count=${NAMED}`,
    "--format=%h %an: %s",
  ];
  const commits = await gitOutput(git, context, { args: [...list, ...range], cwd });
  const last =
    known === "" ? "the remote had no such branch when it was last seen" : `the remote was last seen at ${known}`;
  return [
    { name: "pushes", value: `${count} commits; ${last}` },
    { name: "commits", value: commits },
  ];
}

/** Addresses may hold a password: https://name:password@host. */
function withoutPassword(urls: string): string {
  return urls.replace(/(:\/\/[^/@\s:]*):[^@\s]*@/g, "$1:[redacted]@");
}
