import { cp, rm, writeFile } from "node:fs/promises";
import { extname, join } from "node:path";
import { NOTICES_FILE, noticesText } from "./notices.ts";
import { repositoryRoot } from "./repository-root.ts";
import { runTool } from "./run-tool.ts";

/** What the package needs besides the compiled code: the tool catalog, and files such as the default policy. */
const ASSETS = ["gen/schema", "lib", "services", "cli"];

/**
 * Compiles the product to plain JavaScript in dist/: Node strips no types inside node_modules. Returns what the
 * compiler found wrong; empty where all is well.
 */
async function build(): Promise<string> {
  const target = join(repositoryRoot, "dist");
  await rm(target, { recursive: true, force: true });
  const { code, output } = await runTool("tsc", ["-p", "tsconfig.build.json"]);
  if (code !== 0) return output;
  // Others compile against the client, and against nothing else.
  const declarations = await runTool("tsc", ["-p", "tsconfig.client.json"]);
  if (declarations.code !== 0) return declarations.output;
  for (const path of ASSETS) {
    await cp(join(repositoryRoot, path), join(target, path), { recursive: true, filter: isAsset });
  }
  await writeFile(join(target, NOTICES_FILE), noticesText());
  // For users who have no compiler of protos: all of them as a FileDescriptorSet, with their comments.
  const image = await runTool("buf", ["build", "proto", "--as-file-descriptor-set", "-o", join(target, "reeve.binpb")]);
  if (image.code !== 0) return image.output;
  return "";
}

function isAsset(path: string): boolean {
  return ![".ts", ".md"].includes(extname(path)) && !path.endsWith("/testdata");
}

const problems = await build();
if (problems) {
  console.error(problems);
  process.exitCode = 1;
}
