import type { Environment } from "@marcbachmann/cel-js";
import { isDocument, isInProgramFolder } from "../../../lib/paths/documents.ts";
import { isHidden } from "../../../lib/paths/hidden-paths.ts";
import { operandsWithin } from "../../../lib/paths/operands.ts";

/**
 * Gives an environment the functions about paths that rules can use. Patterns over a path's text miss its other
 * spellings; these look at its names. All are linear in the text, and pure: no disk is looked at.
 */
export function registerPathFunctions(environment: Environment): void {
  environment
    .registerFunction("string.isDocument(): bool", { async: false, handler: (path: string) => isDocument(path) })
    .registerFunction("string.isInProgramFolder(): bool", {
      async: false,
      handler: (path: string) => isInProgramFolder(path),
    })
    .registerFunction("string.isHidden(list<string>): bool", {
      async: false,
      handler: (path: string, roots: readonly string[]) => isHidden(path, roots),
    })
    .registerFunction("operandsWithin(list<dyn>, string, list<string>): bool", {
      async: false,
      handler: (argv: readonly unknown[], cwd: string, roots: readonly string[]) =>
        operandsWithin(argv.map(String), cwd, roots),
    });
}
