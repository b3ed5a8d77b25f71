import { existsSync } from "node:fs";
import { join } from "node:path";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import type { ToolContext } from "../tool.ts";
import { requireKnownSettings } from "./check-repository.ts";
import { type Git, gitOutput, gitSuccess } from "./run-git.ts";

/** How many submodules are looked at, those of submodules too. */
const MOST = 64;

/** How much git may say of one index, in bytes: about a hundred bytes a file. */
const INDEX_OUTPUT = 64 * 1024 * 1024;

/** Git sets it in each submodule's own settings. Where its files are then, none of its settings can make git run anything. */
const WORK_TREE = /^core\.worktree$/;

/**
 * Checks that no submodule has settings that may make git run something. Git looks for changes in the submodules that are checked
 * out, by the settings of each and without those of its command line. Faults: TOOL_FAILED{program,setting}, also where there are
 * too many to look at.
 *
 * @param cwd the repository's folder.
 * @param path its name, for messages.
 */
export async function checkSubmodules(git: Git, context: ToolContext, cwd: string, path: string): Promise<void> {
  const queue = [{ cwd, path }];
  for (const repository of queue) {
    for (const name of await submodules(git, context, repository)) {
      const place = { cwd: join(repository.cwd, name), path: join(repository.path, name) };
      if (!existsSync(join(place.cwd, ".git"))) continue;
      if (queue.length > MOST) throw tooMany(`${path} has more than ${MOST} submodules`);
      const args = ["config", "--list", "--name-only", "--show-scope", "-z"];
      const settings = await gitOutput(git, context, { args, cwd: place.cwd });
      requireKnownSettings(settings, `the settings of the submodule ${place.path}`, WORK_TREE);
      queue.push(place);
    }
  }
}

async function submodules(git: Git, context: ToolContext, { cwd, path }: { cwd: string; path: string }) {
  const args = ["ls-files", "--stage", "--abbrev=4", "-z"];
  const { stdout, truncated } = await gitSuccess(git, context, { args, cwd, maxOutputBytes: INDEX_OUTPUT });
  if (truncated) throw tooMany(`${path} has more files than can be looked at`);
  return stdout.split("\0").flatMap((entry) => /^160000 .*?\t(.+)$/s.exec(entry)?.[1] ?? []);
}

function tooMany(message: string): Error {
  return fault(ErrorReason.TOOL_FAILED, { program: "git", setting: "" }, { message });
}
