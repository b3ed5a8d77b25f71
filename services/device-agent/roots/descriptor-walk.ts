import { closeSync, constants, fstatSync, lstatSync, openSync, readlinkSync } from "node:fs";
import { type HeldEntry, type HeldFolder, SymbolicLinkError, type Walker } from "./held.ts";

/** O_PATH of Linux (open(2)), the same on x64 and arm64; Node does not name it. Needs no right to read. */
const O_PATH = 0o10000000;

const { O_DIRECTORY, O_NOFOLLOW, O_NONBLOCK } = constants;

/**
 * The walk for Linux. Node has no openat(2), but /proc/self/fd/N/name is resolved by the kernel from the open folder N,
 * so each step starts at an inode that is held and takes one name with O_NOFOLLOW. A name that is swapped for a link
 * during the walk is refused; there is no moment at which it is followed. Things are held with O_PATH first, which
 * has no effect on a pipe or device, and are opened through their descriptor after their type is known.
 */
export const descriptorWalker: Walker = {
  root: (realPath) => folderOf(openSync(realPath, O_PATH | O_DIRECTORY | O_NOFOLLOW), realPath),
  enter(folder, name) {
    try {
      return folderOf(openSync(folder.at(name), O_PATH | O_DIRECTORY | O_NOFOLLOW), join(folder, name));
    } catch (error: unknown) {
      if (isNotFolder(error) && isLink(folder.at(name))) throw new SymbolicLinkError(join(folder, name));
      throw error;
    }
  },
  look: (folder, name) => entryOf(openSync(folder.at(name), O_PATH | O_NOFOLLOW), folder, name),
};

function folderOf(fd: number, path: string): HeldFolder {
  return {
    path,
    at: (name) => (name === undefined ? `/proc/self/fd/${fd}` : `/proc/self/fd/${fd}/${name}`),
    [Symbol.dispose]: () => closeSync(fd),
  };
}

function entryOf(fd: number, folder: HeldFolder, name: string): HeldEntry {
  try {
    const stats = fstatSync(fd);
    // Read by name: a link that is swapped meanwhile gives another link's text, which opens nothing.
    const linkTarget = stats.isSymbolicLink() ? readlinkSync(folder.at(name)) : "";
    const open = (flags: number): number => openSync(`/proc/self/fd/${fd}`, flags | O_NONBLOCK);
    return { path: join(folder, name), stats, linkTarget, open, [Symbol.dispose]: () => closeSync(fd) };
  } catch (error: unknown) {
    closeSync(fd);
    throw error;
  }
}

function join(folder: HeldFolder, name: string): string {
  return folder.path === "/" ? `/${name}` : `${folder.path}/${name}`;
}

function isNotFolder(error: unknown): boolean {
  const code = (error as NodeJS.ErrnoException).code;
  return code === "ENOTDIR" || code === "ELOOP";
}

/** Only for the words of an error: the refusal does not depend on it. */
function isLink(path: string): boolean {
  return lstatSync(path, { throwIfNoEntry: false })?.isSymbolicLink() ?? false;
}
