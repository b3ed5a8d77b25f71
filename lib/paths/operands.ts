import { isHidden } from "./hidden-paths.ts";
import { namesBelow, namesOf } from "./names.ts";
import { isSecret } from "./secret-paths.ts";

/**
 * True where every path that a program's arguments can name lies in one of `roots` and is neither secret nor hidden,
 * and so does the folder that it runs in. Whatever is no option counts as a path; an option that holds one ("/" in it)
 * does not pass, because what it means depends on the program. A path with ".." does not pass either: behind a symbolic
 * link it leads elsewhere than its text says. With no roots nothing passes.
 *
 * @param argv the program and its arguments.
 * @param cwd the folder it runs in, absolute; "" for the device's own choice, which lies in a root.
 * @param roots absolute paths.
 */
export function operandsWithin(argv: readonly string[], cwd: string, roots: readonly string[]): boolean {
  if (roots.length === 0 || (cwd !== "" && !isOpen(cwd, roots))) return false;
  const words = argv.slice(1);
  const end = words.indexOf("--");
  const before = end < 0 ? words : words.slice(0, end);
  const after = end < 0 ? [] : words.slice(end + 1);
  const isOption = (word: string): boolean => word.startsWith("-");
  if (before.some((word) => isOption(word) && word.includes("/"))) return false;
  // A relative path starts in a folder that lies in a root. Where that folder is not known, any root stands for it.
  const folder = cwd === "" ? (roots[0] ?? "/") : cwd;
  return [...before.filter((word) => !isOption(word)), ...after].every((word) =>
    isOpen(word.startsWith("/") ? word : `${folder}/${word}`, roots),
  );
}

/** True for a path in a root that is neither secret nor hidden. */
function isOpen(path: string, roots: readonly string[]): boolean {
  const names = namesOf(path);
  if (names === undefined || path.split("/").includes("..")) return false;
  return namesBelow(names, roots) !== undefined && !isSecret(names) && !isHidden(path, roots);
}
