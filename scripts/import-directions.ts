import { glob, readFile } from "node:fs/promises";
import { join, sep } from "node:path";
import { folderViolations } from "./import-directions/folders.ts";
import { findViolations } from "./import-directions/rules.ts";
import { repositoryRoot } from "./repository-root.ts";

const SOURCES = "{gen,lib,services,cli,client,examples,testkit,test,bench,scripts}/**/*.ts";

/**
 * Checks who imports what: `gen → lib → services, cli`, `gen → client`, folders of these by floors and without circles,
 * no service imports another, one folder starts programs, one file knows node:sqlite and one folder pg, and only main.ts
 * and config.ts read the environment. Returns one line for each violation.
 */
export async function checkImportDirections(root: string = repositoryRoot): Promise<string[]> {
  const manifest: unknown = JSON.parse(await readFile(join(root, "package.json"), "utf8"));
  const { dependencies } = manifest as { dependencies: Record<string, string> };
  const paths = (await Array.fromAsync(glob(SOURCES, { cwd: root }))).map((path) => path.replaceAll(sep, "/")).sort();
  const files = await Promise.all(
    paths.map(async (path) => ({ path, text: await readFile(join(root, path), "utf8") })),
  );
  const product = files.filter(({ path }) => /^(?:lib|services|cli|client)\//.test(path));
  return [...findViolations(files, { dependencies: new Set(Object.keys(dependencies)) }), ...folderViolations(product)];
}

if (import.meta.main) {
  const violations = await checkImportDirections();
  for (const violation of violations) console.error(violation);
  if (violations.length > 0) process.exitCode = 1;
}
