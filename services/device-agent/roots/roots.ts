import { mkdirSync } from "node:fs";
import { descriptorWalker } from "./descriptor-walk.ts";
import type { HeldEntry, HeldFolder, Walker } from "./held.ts";
import { type HeldFile, openHeldFile } from "./held-file.ts";
import { type Need, pathOf, segmentsOf } from "./lexical.ts";
import { createLocator, type Place } from "./locate.ts";
import { pathWalker } from "./path-walk.ts";
import { folderMissing, guarded, osFault, refused } from "./refusals.ts";
import type { RootsOptions } from "./roots-options.ts";

/**
 * The paths that tools may use. Every method takes an absolute path and throws a fault: PATH_OUTSIDE_ROOTS{field,path}
 * for what is not granted, is secret, or has a symbolic link in it; TARGET_NOT_FOUND{field};
 * OS_REFUSED{field,errno}; INVALID_INPUT{field,rule}. What they return is held: dispose of it with `using`.
 */
export interface Roots extends Disposable {
  /** The folder that programs run in where none is asked for. Undefined where no folder is granted. */
  readonly workDir: string | undefined;
  /** The granted folders, as real paths. */
  readonly granted: readonly { path: string; write: boolean }[];
  /** Holds a folder, to list it or to run in it. */
  openFolder(path: string, need: Need): HeldFolder;
  /** Holds a folder in a held folder. */
  openChild(folder: HeldFolder, name: string, need: Need): HeldFolder;
  /** Refuses a name in a held folder that is secret, or the agent's own. Looks at nothing. */
  checkChild(folder: HeldFolder, name: string, need: Need): void;
  /** Holds anything in a held folder, and opens nothing. Undefined where the name is free. Secrets and the agent's own are refused. */
  lookChild(folder: HeldFolder, name: string, need: Need): HeldEntry | undefined;
  /** Opens a regular file for reading. One with several names (hard links) is refused: the others may lie outside. */
  openFile(path: string, need: Need): HeldFile;
  /** Holds anything, to look at it; a symbolic link as itself. Secrets may be looked at, their content not. */
  openEntry(path: string, need: Need): HeldEntry;
  /** Holds the folder that a path's last name is in, and makes the missing folders above it where asked to. */
  openParent(path: string, need: Need & { createFolders?: boolean }): HeldParent;
}

/** A place for a file: the folder, which is held, and the name in it. */
export interface HeldParent extends Disposable {
  readonly folder: HeldFolder;
  readonly name: string;
  /** The path as it was asked for, for messages. */
  readonly path: string;
  /** What it names now, or undefined. */
  look(): HeldEntry | undefined;
}

/** Holds the roots open. Throws an Error that names a root or work folder that cannot be used. */
export function createRoots(options: RootsOptions): Roots {
  const walk = options.walk ?? (process.platform === "linux" ? "descriptors" : "paths");
  const walker = walk === "descriptors" ? descriptorWalker : pathWalker;
  const { roots, check, locate } = createLocator(walker, options);

  const checkChild = (folder: HeldFolder, name: string, need: Need): void => {
    const path = `${folder.path}/${name}`;
    check(segmentsOf(path, need.field), path, need, true);
  };

  const descend = (place: Place, names: readonly string[], make = false): HeldFolder => {
    let folder = borrowed(place.root.folder);
    for (const name of names) {
      using parent = folder;
      if (make) makeFolder(parent, name);
      folder = walker.enter(parent, name);
    }
    return folder;
  };

  const toParent = (place: Place, make = false): { folder: HeldFolder; name: string } => {
    const name = place.rest.at(-1);
    // A root has no parent that is held; "." names it from itself.
    return { folder: descend(place, place.rest.slice(0, -1), make), name: name ?? "." };
  };

  const toParentOf = (place: Place, path: string, need: Need & { createFolders?: boolean }) => {
    try {
      return toParent(place, need.createFolders ?? false);
    } catch (error: unknown) {
      throw (error as NodeJS.ErrnoException).code === "ENOENT" ? folderMissing(path, need.field) : error;
    }
  };

  const toEntry = (place: Place): HeldEntry => {
    const { folder, name } = toParent(place);
    using parent = folder;
    return walker.look(parent, name);
  };

  return {
    workDir: options.workDir,
    granted: roots.map((root) => ({ path: pathOf(root.real), write: root.write })),
    openFolder(path, need) {
      const place = locate(path, need);
      return guarded(path, need, () => descend(place, place.rest));
    },
    openChild(folder, name, need) {
      checkChild(folder, name, need);
      return guarded(`${folder.path}/${name}`, need, () => walker.enter(folder, name));
    },
    checkChild,
    lookChild(folder, name, need) {
      checkChild(folder, name, need);
      return lookIn(walker, folder, name, `${folder.path}/${name}`, need);
    },
    openFile(path, need) {
      const place = locate(path, need);
      return guarded(path, need, () => {
        using entry = toEntry(place);
        return openHeldFile(entry, path, need);
      });
    },
    openEntry(path, need) {
      const place = locate(path, need, false);
      return guarded(path, need, () => toEntry(place));
    },
    openParent(path, need) {
      const place = locate(path, need);
      if (place.rest.length === 0) throw refused(path, need.field, "EISDIR", "is a folder");
      const { folder, name } = guarded(path, need, () => toParentOf(place, path, need));
      const look = (): HeldEntry | undefined => lookIn(walker, folder, name, path, need);
      return { folder, name, path, look, [Symbol.dispose]: () => folder[Symbol.dispose]() };
    },
    [Symbol.dispose]() {
      for (const root of roots) root.folder[Symbol.dispose]();
    },
  };
}

function lookIn(walker: Walker, folder: HeldFolder, name: string, path: string, need: Need): HeldEntry | undefined {
  try {
    return walker.look(folder, name);
  } catch (error: unknown) {
    if ((error as NodeJS.ErrnoException).code === "ENOENT") return undefined;
    throw osFault(error, path, need.field);
  }
}

function makeFolder(parent: HeldFolder, name: string): void {
  try {
    // Never writable by others, also where the agent runs without a umask.
    mkdirSync(parent.at(name), 0o755);
  } catch (error: unknown) {
    if ((error as NodeJS.ErrnoException).code !== "EEXIST") throw error;
  }
}

/** The folder for a walk that disposes of every folder it leaves. The root itself stays open. */
function borrowed(folder: HeldFolder): HeldFolder {
  return { path: folder.path, at: folder.at, [Symbol.dispose]: () => undefined };
}
