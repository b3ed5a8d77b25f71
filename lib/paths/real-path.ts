import { realpathSync } from "node:fs";

/** Where a path leads, without symbolic links; undefined where it leads nowhere or may not be looked up. */
export function realPathOf(path: string): string | undefined {
  try {
    return realpathSync.native(path);
  } catch {
    return undefined;
  }
}

/** Whether an absolute path is a folder or lies in it. Both as they really are. */
export function isAtOrBelow(path: string, folder: string): boolean {
  return path === folder || folder === "/" || path.startsWith(`${folder}/`);
}
