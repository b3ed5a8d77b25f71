/**
 * The names of an absolute path, one a level, without "" and "."; ".." removes one level as text. Undefined for a
 * path that is not absolute or holds a NUL.
 */
export function namesOf(path: string): string[] | undefined {
  if (!path.startsWith("/") || path.includes("\0")) return undefined;
  const names: string[] = [];
  for (const name of path.split("/")) {
    if (name === "..") names.pop();
    else if (name !== "" && name !== ".") names.push(name);
  }
  return names;
}

/**
 * The names of a path below the deepest of the folders that it lies in, or undefined where it lies in none. All are
 * absolute paths; the folders count as they are written.
 */
export function namesBelow(names: readonly string[], folders: readonly string[]): string[] | undefined {
  let deepest: number | undefined;
  for (const folder of folders) {
    const above = namesOf(folder);
    if (above?.every((name, level) => names[level] === name)) deepest = Math.max(deepest ?? 0, above.length);
  }
  return deepest === undefined ? undefined : names.slice(deepest);
}
