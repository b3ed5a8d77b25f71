import { cp } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "../repository-root.ts";
import { runTool, toolOutput } from "../run-tool.ts";
import { withTemporaryFolder } from "../temporary-folder.ts";
import { type StepResult, toolResult } from "./step.ts";

/** Where main may be: a clone of one branch, or a detached one, has it only as the remote's. */
const MAIN_REFS = ["refs/heads/main", "refs/remotes/origin/main"];

/** Came with API v1, which changed everything before it; what main has since then must not break. */
const SELF_SUFFICIENT = "proto/buf/validate/validate.proto";

/** Compares the protos with those of main: no caller that has the protos of main may break. */
export async function checkBreaking(root: string = repositoryRoot): Promise<StepResult> {
  const ref = await firstRef(root);
  if (!ref) return { kind: "skipped", why: "there is no branch main here" };
  if (!(await exists(root, `${ref}:${SELF_SUFFICIENT}`))) return { kind: "skipped", why: "main has no API v1 yet" };
  return withTemporaryFolder(async (folder) => {
    await checkOut(root, ref, folder);
    return toolResult("buf", ["breaking", "--against", folder], root);
  });
}

async function firstRef(root: string): Promise<string | undefined> {
  for (const ref of MAIN_REFS) {
    if (await exists(root, `${ref}^{commit}`)) return ref;
  }
  return undefined;
}

async function exists(root: string, object: string): Promise<boolean> {
  return (await runTool("git", ["rev-parse", "--verify", "--quiet", object], root)).code === 0;
}

// Not `--against .git`: the protos of others are derived, so a commit does not hold them.
async function checkOut(root: string, ref: string, folder: string): Promise<void> {
  const archive = join(folder, "main.tar");
  await toolOutput("git", ["archive", "--output", archive, ref, "buf.yaml", "proto"], root);
  await toolOutput("tar", ["-xf", archive, "-C", folder]);
  await cp(join(root, "third_party"), join(folder, "third_party"), { recursive: true });
}
