import { globSync, readFileSync } from "node:fs";
import { join } from "node:path";

/** The test files, of those that the pattern matches, that start a policy service and leave to its helper which database it has. */
export function testsOnEitherDatabase(root: string, pattern: string): string[] {
  return globSync(pattern, { cwd: root }).filter((path) => {
    const text = readFileSync(join(root, path), "utf8");
    return text.includes("startTestPolicy(") && !/\b(?:startPostgresServer|openSqlite)\(/.test(text);
  });
}
