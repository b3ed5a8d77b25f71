import { readFile } from "node:fs/promises";
import { homedir, tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { repositoryRoot } from "../repository-root.ts";
import { toolOutput } from "../run-tool.ts";

/** Folders that a text may well name, on any machine. */
const COMMON = new Set(["/", "/home", "/root", "/tmp", "/Users", "/opt", "/srv", "/src", "/app", "/usr/src"]);

/**
 * Names the places where a file of the repository holds a path of this machine: the folder of the checkout, the one
 * it is in, or the user's home. Such a path works nowhere else and reveals the machine.
 */
export async function machinePathUses(): Promise<string[]> {
  const paths = machinePaths(repositoryRoot, homedir());
  const listed = await toolOutput("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"]);
  const names = listed.split("\0").filter((name) => name !== "");
  const found = await Promise.all(names.map(async (name) => usesIn(name, await textOf(name), paths)));
  return found.flat();
}

/** The folders whose names must not appear. Those that every machine has are not among them. */
export function machinePaths(root: string, home: string): string[] {
  return [...new Set([root, dirname(root), home])].filter((path) => !COMMON.has(path) && path !== tmpdir());
}

/** The lines of a text that name one of the folders, or something in it. */
export function usesIn(name: string, text: string, paths: readonly string[]): string[] {
  const patterns = paths.map((path) => new RegExp(`(?<![\\w.~$}-])${RegExp.escape(path)}(?![\\w.-])`));
  return text.split("\n").flatMap((line, i) => {
    return patterns.some((pattern) => pattern.test(line)) ? [`${name}:${i + 1}: names a path of this machine`] : [];
  });
}

async function textOf(name: string): Promise<string> {
  try {
    return await readFile(join(repositoryRoot, name), "utf8");
  } catch (error: unknown) {
    // A file that is deleted but still in git's index.
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}
