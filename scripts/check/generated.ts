import { readdir, readFile } from "node:fs/promises";
import { join, relative } from "node:path";
import { repositoryRoot } from "../repository-root.ts";
import { toolOutput } from "../run-tool.ts";
import { withTemporaryFolder } from "../temporary-folder.ts";
import { writeValidateProto } from "../third-party.ts";

/** Generates into a folder of its own and names what differs, is missing or is left over: of gen/, and validate.proto. */
export async function staleFiles(): Promise<string[]> {
  return withTemporaryFolder(async (folder) => {
    await toolOutput("buf", ["generate", "--output", folder]);
    await writeValidateProto(join(folder, "proto"));
    const stale = await differences(join(repositoryRoot, "gen"), join(folder, "gen"));
    const staleProtos = await differences(join(repositoryRoot, "proto/buf"), join(folder, "proto/buf"));
    return [...stale.map((path) => `gen/${path}`), ...staleProtos.map((path) => `proto/buf/${path}`)].map(
      (path) => `${path} is not what its source gives: run npm run generate`,
    );
  });
}

/** The paths of files that two folders do not both have with the same bytes, sorted. */
export async function differences(left: string, right: string): Promise<string[]> {
  const [before, after] = [await filesBelow(left), await filesBelow(right)];
  const paths = [...new Set([...before.keys(), ...after.keys()])].sort();
  return paths.filter((path) => {
    const [a, b] = [before.get(path), after.get(path)];
    return !a || !b || !a.equals(b);
  });
}

async function filesBelow(folder: string): Promise<Map<string, Buffer>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const files = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  return new Map(await Promise.all(files.map(async (file) => [relative(folder, file), await readFile(file)] as const)));
}
