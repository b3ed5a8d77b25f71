import { type Stats, statSync } from "node:fs";
import { dirname, isAbsolute, join } from "node:path";
import { realPathOf } from "../../../lib/paths/real-path.ts";

export interface ProgramFolders {
  /** In the order of the PATH. Absolute, without repeats. */
  folders: readonly string[];
  /** Folders of the PATH that programs are not taken from, and why. Those that do not exist are not among them. */
  dropped: readonly DroppedFolder[];
  /** True for a file that could be replaced by no one but its owner and is executable. */
  isProgram(path: string): boolean;
}

/** A folder of the PATH that programs are not taken from. */
export interface DroppedFolder {
  folder: string;
  /** In words for the operator. */
  why: string;
}

/**
 * Chooses from a PATH the folders whose programs are what the owner of the machine put there: absolute, outside every
 * write root, and writable by no one but root and the device agent's user, with every folder above them. Otherwise a
 * file that a caller creates would be run under the name of a program that a rule allows. `writeRoots` are absolute.
 * Every test is of the real path, so that a symbolic link stands for what it leads to.
 */
export function programFolders(path: string, writeRoots: readonly string[]): ProgramFolders {
  const writable = writeRoots.map((root) => realPath(root) ?? root);
  const folders = new Set<string>();
  const dropped = new Map<string, string>();
  for (const folder of new Set(path.split(":").filter((each) => each !== ""))) {
    if (!isAbsolute(folder)) dropped.set(folder, "is a relative path");
    else if (realPath(folder) !== undefined) {
      const why = whyUnsafe(folder, writable);
      if (why === undefined) folders.add(folder);
      else dropped.set(folder, why);
    }
  }
  return {
    folders: [...folders],
    dropped: [...dropped].map(([folder, why]) => ({ folder, why })),
    isProgram: (file) => isExecutableFile(file) && whyUnsafe(file, writable) === undefined,
  };
}

/** Why a file or folder could be changed by someone else or by a caller, or undefined. `writeRoots` are real paths. */
export function whyUnsafe(path: string, writeRoots: readonly string[]): string | undefined {
  const real = realPath(path);
  if (real === undefined) return "cannot be looked at";
  const root = writeRoots.find((each) => isIn(real, each));
  if (root !== undefined) return `lies in ${root}, which may be written`;
  if (isOpen(statSync(real))) return "may be written by other users";
  // A user who may write the folder above can put another one in its place, but for a folder such as /tmp (sticky).
  for (let above = dirname(real); ; above = dirname(above)) {
    const stats = statSync(above);
    if (isOpen(stats) && (stats.mode & STICKY) === 0) return `lies in ${above}, which other users may write`;
    if (above === dirname(above)) return undefined;
  }
}

const STICKY = 0o1000;
const OTHERS_WRITE = 0o022;

/** True where someone else than root and the agent's user may write. */
function isOpen({ uid, mode }: Stats): boolean {
  return (mode & OTHERS_WRITE) !== 0 || (uid !== 0 && uid !== process.getuid?.());
}

function isIn(path: string, folder: string): boolean {
  return path === folder || path.startsWith(folder === "/" ? "/" : `${folder}/`);
}

function isExecutableFile(path: string): boolean {
  const stats = statSync(path, { throwIfNoEntry: false });
  return stats?.isFile() === true && (stats.mode & 0o111) !== 0;
}

function realPath(path: string): string | undefined {
  return realPathOf(join(path));
}
