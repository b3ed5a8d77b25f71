import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import type { HeldFolder } from "../../roots/held.ts";
import type { ToolContext } from "../tool.ts";
import { requireInside, WRITE } from "./git-folder.ts";
import { type Git, gitOutput } from "./run-git.ts";

/**
 * Settings of a repository that make git run nothing. Anything else in a repository's own configuration may name a
 * program: a filter, a helper, a merge driver, an ssh command; the names of some are the repository's to choose.
 */
const HARMLESS_SETTINGS: readonly RegExp[] = [
  /^core\.(?:repositoryformatversion|filemode|bare|logallrefupdates|ignorecase|precomposeunicode|symlinks|autocrlf|eol)$/,
  /^core\.(?:safecrlf|quotepath|abbrev|sharedrepository|compression|bigfilethreshold|untrackedcache|preloadindex|trustctime)$/,
  /^core\.(?:checkstat|sparsecheckout|sparsecheckoutcone|commitgraph|multipackindex|longpaths|whitespace)$/,
  /^extensions\.(?:objectformat|refstorage|partialclone|worktreeconfig|noop)$/,
  /^remote\..+\.(?:url|pushurl|fetch|tagopt|prune|partialclonefilter|promisor|skipfetchall|skipdefaultupdate)$/,
  /^branch\..+\.(?:remote|merge|rebase|pushremote|description)$/,
  /^submodule\..+\.(?:url|active|branch|path|ignore)$/,
  /^(?:user|author|committer)\.(?:name|email|signingkey)$/,
  /^(?:push\.(?:default|followtags|autosetupremote)|pull\.(?:rebase|ff)|fetch\.(?:prune|writecommitgraph)|init\.defaultbranch)$/,
  /^gc\.(?!recentobjectshook$)/,
  /^(?:pack|index|feature|color|column|status|log|rerere|receive\.denycurrentbranch|commit\.(?:status|verbose)|tag\.sort)\b/,
];

/**
 * Checks that a held folder is the top of a repository that keeps to itself: its git folder and work tree lie in the
 * granted roots, with the git folder that it shares with other work trees and the stores that it borrows objects from, and
 * its own configuration names nothing that git could run. Faults: TOOL_FAILED where it is no
 * repository; PATH_OUTSIDE_ROOTS{field,path}; TOOL_FAILED{program,setting} for a setting that is not known harmless.
 */
export async function checkRepository(git: Git, context: ToolContext, folder: HeldFolder, path: string): Promise<void> {
  const cwd = folder.at();
  // Without a ceiling git would take a repository further up, which may lie outside the roots.
  const env = { GIT_CEILING_DIRECTORIES: parentOf(folder.path) };
  const config = await gitOutput(git, context, {
    args: ["config", "--list", "--name-only", "--show-scope", "-z"],
    cwd,
    env,
  });
  requireKnownSettings(config, `${path}/.git/config`);
  const places = await gitOutput(git, context, {
    args: ["rev-parse", "--path-format=absolute", "--git-dir", "--git-common-dir", "--show-toplevel"],
    cwd,
    env,
  });
  const [gitDir = "", commonDir = "", top = ""] = places.split("\n");
  using held = context.roots.openFolder(top, WRITE);
  void held;
  for (const place of new Set([gitDir, commonDir])) requireInside(context, place);
}

/**
 * Requires that no setting of a repository may make git run something. Fault: TOOL_FAILED{program,setting}.
 *
 * @param config what `git config --list --name-only --show-scope -z` prints.
 * @param where where the settings are, for the message.
 * @param also names that are harmless there besides.
 */
export function requireKnownSettings(config: string, where: string, also?: RegExp): void {
  const bad = unknownSetting(config, also);
  if (bad === undefined) return;
  const message = `the repository's own configuration sets ${bad}, which may make git run a program: ${where}`;
  throw fault(ErrorReason.TOOL_FAILED, { program: "git", setting: bad }, { message });
}

/** The first setting of the local or worktree scope that may make git run something. Pure. */
export function unknownSetting(config: string, also?: RegExp): string | undefined {
  const harmless = also === undefined ? HARMLESS_SETTINGS : [...HARMLESS_SETTINGS, also];
  const fields = config.split("\0");
  for (let at = 0; at + 1 < fields.length; at += 2) {
    const [scope, name = ""] = [fields[at], fields[at + 1]];
    if (scope !== "local" && scope !== "worktree") continue;
    if (!harmless.some((pattern) => pattern.test(name.toLowerCase()))) return name;
  }
  return undefined;
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}
