import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync, realpathSync, type Stats } from "node:fs";
import { dirname, join } from "node:path";
import { type HeldEntry, type HeldFolder, SymbolicLinkError, type Walker } from "./held.ts";

/**
 * The walk for systems without /proc. It works on path text: every step is checked with lstat and realpath, and what
 * was opened is compared with what was checked. A process of the same user that swaps a folder for a link between the
 * check and the use can still win that race; only descriptorWalker closes it.
 */
export const pathWalker: Walker = {
  root: (realPath) => folderOf(realPath),
  enter(folder, name) {
    const path = join(folder.path, name);
    const stats = lstatSync(path);
    if (stats.isSymbolicLink()) throw new SymbolicLinkError(path);
    if (!stats.isDirectory()) throw Object.assign(new Error(path), { code: "ENOTDIR" });
    return folderOf(requireIn(folder, path));
  },
  look(folder, name) {
    const path = join(folder.path, name);
    return entryOf(path, lstatSync(path), folder);
  },
};

function folderOf(path: string): HeldFolder {
  return { path, at: (name) => (name === undefined ? path : join(path, name)), [Symbol.dispose]: () => undefined };
}

function entryOf(path: string, stats: Stats, folder: HeldFolder): HeldEntry {
  return {
    path,
    stats,
    linkTarget: stats.isSymbolicLink() ? readlinkSync(path) : "",
    open(flags) {
      const fd = openSync(path, flags | constants.O_NOFOLLOW | constants.O_NONBLOCK);
      try {
        const opened = fstatSync(fd);
        if (opened.dev !== stats.dev || opened.ino !== stats.ino) throw new SymbolicLinkError(path);
        requireIn(folder, path);
        return fd;
      } catch (error: unknown) {
        closeSync(fd);
        throw error;
      }
    },
    [Symbol.dispose]: () => undefined,
  };
}

/** The real path, which must lie directly in the folder: its own name may differ in case only. */
function requireIn(folder: HeldFolder, path: string): string {
  const real = realpathSync.native(path);
  if (dirname(real) !== folder.path) throw new SymbolicLinkError(path);
  return real;
}
