import { cp, rm, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { bundle } from "./bundle.ts";
import { NOTICES_FILE, noticesText } from "./notices.ts";
import { repositoryRoot } from "./repository-root.ts";
import { runTool } from "./run-tool.ts";

/** What the package needs besides the bundle, where its own code looks for it. */
const ASSETS = ["gen/schema", "services/policy/rules/default-policy.yaml"];

/** Builds the product in dist/, as plain JavaScript. Returns what the compilers found wrong; empty where all is well. */
async function build(): Promise<string> {
  const target = join(repositoryRoot, "dist");
  await rm(target, { recursive: true, force: true });
  await bundle(target);
  // Others compile against the client, and against nothing else.
  const declarations = await runTool("tsc", ["-p", "tsconfig.client.json"]);
  if (declarations.code !== 0) return declarations.output;
  for (const path of ASSETS) {
    await cp(join(repositoryRoot, path), join(target, path), { recursive: true });
  }
  await writeFile(join(target, NOTICES_FILE), noticesText());
  // For users who have no compiler of protos: all of them as a FileDescriptorSet, with their comments.
  const image = await runTool("buf", ["build", "proto", "--as-file-descriptor-set", "-o", join(target, "reeve.binpb")]);
  if (image.code !== 0) return image.output;
  return "";
}

const problems = await build();
if (problems) {
  console.error(problems);
  process.exitCode = 1;
}
