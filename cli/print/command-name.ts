import { constants, existsSync, readFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { isAccessible } from "../../lib/files/is-accessible.ts";

/** Where a command was started. */
interface Start {
  env: Readonly<Record<string, string | undefined>>;
  folder: string;
  /** The script that Node was given. */
  script: string;
}

/**
 * How `reeve` is started from the same folder in another terminal: by its name where it is on the PATH, with `npx` where npm
 * has it there (elsewhere npx would fetch a stranger's package of that name), and by its path otherwise.
 */
export function commandName({ env, folder, script }: Start): string {
  // Another terminal's PATH lacks what npm puts in front of this one.
  const entries = (env.PATH ?? "").split(delimiter).filter((entry) => !/node_modules.\.bin$/.test(entry));
  if (entries.some((entry) => entry !== "" && isAccessible(join(entry, "reeve"), constants.X_OK))) return "reeve";
  return hasLocally(folder) ? "npx reeve" : script;
}

/** Whether the nearest package is this one, or has it installed: there npx looks first. */
function hasLocally(folder: string): boolean {
  const file = join(folder, "package.json");
  if (existsSync(join(folder, "node_modules", ".bin", "reeve"))) return true;
  if (existsSync(file)) return (JSON.parse(readFileSync(file, "utf8")) as { name?: unknown }).name === "reeve";
  return dirname(folder) !== folder && hasLocally(dirname(folder));
}
