import type { Stats } from "node:fs";

/** A folder that is held: what is opened through it stays in it, whatever happens to the names above it. */
export interface HeldFolder extends Disposable {
  /** Its real path, for messages and for matching. Not for opening. */
  readonly path: string;
  /** The text to open the folder itself with, or one name in it. Also good as a program's work folder. */
  at(name?: string): string;
}

/** A file, folder or other thing that is held without having been opened: looking at it has no effect on it. */
export interface HeldEntry extends Disposable {
  readonly path: string;
  readonly stats: Stats;
  /** Where a symbolic link points. Empty for anything else. */
  readonly linkTarget: string;
  /** Opens exactly this thing, with O_RDONLY, O_WRONLY, O_APPEND. The caller closes the descriptor. */
  open(flags: number): number;
}

/** Goes from a folder to what is in it, one name at a time, and never through a symbolic link. */
export interface Walker {
  /** Holds a root by its real path. Throws the errno of the operating system. */
  root(realPath: string): HeldFolder;
  /** Holds a folder in a folder. Throws SymbolicLinkError, or the errno of the operating system. */
  enter(folder: HeldFolder, name: string): HeldFolder;
  /** Holds anything in a folder; a symbolic link as itself. Throws the errno of the operating system. */
  look(folder: HeldFolder, name: string): HeldEntry;
}

/** A symbolic link stands where a folder or file was wanted. */
export class SymbolicLinkError extends Error {
  override readonly name = "SymbolicLinkError";
}
