import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { repositoryRoot } from "../repository-root.ts";
import { toolOutput } from "../run-tool.ts";
import { plainWords, TERMS } from "./terms.ts";

/** One retired word in one place. */
export interface Use {
  path: string;
  /** From 1; 0 is the path itself. */
  line: number;
  word: string;
  better: string;
}

const READ = /\.(?:ts|js|py|sh|proto|md|ya?ml|service|conf|env|Dockerfile)$|(?:^|\/)Dockerfile[^/]*$/;

// gen/ is derived from the protos, and this folder has to name the words.
const LEFT_OUT = /^(?:gen|third_party|node_modules|dist)\/|^scripts\/(?:words|check\/words)/;

/** The retired words of one file, in its path and in its text. */
export function usesIn(path: string, text: string): Use[] {
  return [path, ...text.split("\n")].flatMap((content, line) => {
    const plain = plainWords(content);
    return TERMS.flatMap(({ pattern, better }) =>
      [...plain.matchAll(new RegExp(pattern, "g"))].map(([word]) => ({ path, line, word, better })),
    );
  });
}

/** The retired words of every file that git knows or would add. */
export async function allUses(root: string = repositoryRoot): Promise<Use[]> {
  const listed = await toolOutput("git", ["ls-files", "--cached", "--others", "--exclude-standard", "-z"], root);
  const paths = listed.split("\0").filter((path) => READ.test(path) && !LEFT_OUT.test(path));
  const found = await Promise.all(paths.map(async (path) => usesIn(path, await textOf(join(root, path)))));
  return found.flat();
}

async function textOf(path: string): Promise<string> {
  try {
    return await readFile(path, "utf8");
  } catch (error: unknown) {
    // A file that is deleted but still in git's index.
    if (error instanceof Error && "code" in error && error.code === "ENOENT") return "";
    throw error;
  }
}
