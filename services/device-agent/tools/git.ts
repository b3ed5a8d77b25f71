import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  CloneRequest,
  CloneResponseSchema,
  CommitRequest,
  CommitResponseSchema,
  Git as GitService,
  PushRequest,
  PushResponseSchema,
} from "../../../gen/ts/reeve/tools/v1/git_pb.ts";
import { invalidField } from "../../../lib/fault/invalid-input.ts";
import { refused } from "../roots/refusals.ts";
import { checkRepository } from "./git/check-repository.ts";
import { checkSubmodules } from "./git/check-submodules.ts";
import { branchToPush } from "./git/pushed.ts";
import { createGit, type Git, type GitOptions, gitAnswer, gitOutput } from "./git/run-git.ts";
import { programFailed } from "./outcome.ts";
import type { ToolContext, ToolFamily } from "./tool.ts";

const WRITE = { access: "write", field: "path" } as const;

/** Clone, commit and push with a profile under which neither a repository nor a remote makes git run a program. */
export function createGitTools(options: GitOptions = {}): ToolFamily<typeof GitService> {
  const git = createGit(options);
  return {
    clone: (input, context) => clone(git, input, context),
    commit: (input, context) => commit(git, input, context),
    push: (input, context) => push(git, input, context),
  };
}

async function clone(
  git: Git,
  { url, path, branch, depth }: CloneRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof CloneResponseSchema>> {
  refuseHelper(url);
  using place = context.roots.openParent(path, WRITE);
  using existing = place.look();
  if (existing !== undefined) throw refused(path, "path", "EEXIST", "exists already");
  const limits = [...(branch ? ["--branch", branch] : []), ...(depth ? ["--depth", String(depth)] : [])];
  const args = ["clone", "--template=", "--no-recurse-submodules", ...limits, "--", url, `./${place.name}`];
  // The folder is held, so the clone lands in it, whatever becomes of the path meanwhile.
  const run = await git(context, { args, cwd: place.folder.at(), talks: true, live: true });
  if (run.exitCode !== 0) throw programFailed("git", run);
  using made = context.roots.openFolder(path, WRITE);
  return await whereIs(git, context, made.at());
}

async function commit(
  git: Git,
  { path, message, paths, authorName, authorEmail }: CommitRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof CommitResponseSchema>> {
  using folder = context.roots.openFolder(path, WRITE);
  await checkRepository(git, context, folder, path);
  const cwd = folder.at();
  await checkSubmodules(git, context, cwd, path);
  if (paths.length > 0) {
    await gitOutput(git, context, { args: ["--literal-pathspecs", "add", "-A", "--", ...paths], cwd });
    // A repository among the paths is a submodule now.
    await checkSubmodules(git, context, cwd, path);
  }
  const what = paths.length > 0 ? ["--only", "--", ...paths] : ["--all"];
  // The owner's signature stands for the owner, not for an agent.
  const args = ["--literal-pathspecs", "commit", "--no-verify", "--no-gpg-sign", "--file=-", ...what];
  const env = identity(authorName, authorEmail);
  const run = await git(context, { args, cwd, env, stdin: message, live: true });
  if (run.exitCode !== 0) throw programFailed("git", run);
  const listing = [
    "show",
    "--first-parent",
    "-m",
    "--no-ext-diff",
    "--no-textconv",
    "--no-renames",
    "--format=",
    "--name-only",
    "-z",
    "HEAD",
  ];
  const files = await gitOutput(git, context, { args: listing, cwd });
  const filesChanged = files.split("\0").filter((name) => name !== "").length;
  return { ...(await whereIs(git, context, cwd)), filesChanged };
}

async function push(
  git: Git,
  { path, remote, branch }: PushRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof PushResponseSchema>> {
  using folder = context.roots.openFolder(path, WRITE);
  await checkRepository(git, context, folder, path);
  const cwd = folder.at();
  const { name, commit: pushed } = await branchToPush(git, context, cwd, branch);
  // The commit itself is pushed, so that what is reported is what the remote has. Without "+" git refuses to overwrite.
  const target = `${pushed}:refs/heads/${name}`;
  const args = ["push", "--no-verify", "--no-signed", "--recurse-submodules=no", "--", remote || "origin", target];
  const run = await git(context, { args, cwd, talks: true, live: true });
  if (run.exitCode !== 0) throw programFailed("git", run);
  return { commit: pushed, branch: name, output: (run.stdout + run.stderr).trim() };
}

/** git runs "git-remote-NAME" for an address NAME::rest. The schema refuses that too. */
function refuseHelper(url: string): void {
  if (!/^[\w.+-]*::/.test(url) && !url.startsWith("-")) return;
  const message = "is no address that git may be given";
  throw invalidField("url", "url", message, { text: message });
}

async function whereIs(git: Git, context: ToolContext, cwd: string): Promise<{ commit: string; branch: string }> {
  const commit = await gitAnswer(git, context, { args: ["rev-parse", "-q", "--verify", "HEAD"], cwd });
  const branch = await gitAnswer(git, context, { args: ["symbolic-ref", "--short", "-q", "HEAD"], cwd });
  return { commit, branch };
}

function identity(name: string, email: string): Record<string, string> {
  return {
    ...(name ? { GIT_AUTHOR_NAME: name, GIT_COMMITTER_NAME: name } : {}),
    ...(email ? { GIT_AUTHOR_EMAIL: email, GIT_COMMITTER_EMAIL: email } : {}),
  };
}
