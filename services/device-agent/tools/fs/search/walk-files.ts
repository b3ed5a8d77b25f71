import { readdir } from "node:fs/promises";
import { isHiddenName } from "../../../../../lib/paths/hidden-paths.ts";
import { looksSecret } from "../../../../../lib/paths/secret-paths.ts";
import type { HeldEntry, HeldFolder } from "../../../roots/held.ts";
import { asFault } from "../../../roots/refusals.ts";
import type { Roots } from "../../../roots/roots.ts";
import type { PathFilter } from "./globs.ts";

const NEED = { access: "read", field: "path" } as const;

/** What the walk came to. An entry is held until the next one is asked for. */
export type Found =
  | {
      kind: "file";
      entry: HeldEntry /** Relative to where the walk began; empty where it began at the file. */;
      path: string;
    }
  | { kind: "folder" }
  /** It may hold secrets, cannot be opened, or is no file. */
  | { kind: "skipped" };

interface Options {
  filter: PathFilter;
  /** Names that begin with a dot, too. */
  hidden: boolean;
}

/** How deep the walk goes. Each level holds a descriptor. */
const DEEPEST = 64;

/**
 * The files of a folder and of all below it, by name, each folder's own right after it. Goes through no symbolic link. Throws
 * the faults of Roots for the path itself; what cannot be opened below it is skipped.
 */
export async function* walkFiles(path: string, roots: Roots, options: Options): AsyncGenerator<Found, void, undefined> {
  {
    using entry = roots.openEntry(path, NEED);
    if (!entry.stats.isDirectory()) {
      // Refuses a secret, a link and whatever is no file, with the words of fs.read.
      roots.openFile(path, NEED)[Symbol.dispose]();
      yield { kind: "file", entry, path: "" };
      return;
    }
  }
  using folder = roots.openFolder(path, NEED);
  const names = await namesOf(folder).catch((error: unknown) => {
    throw asFault(error, path, NEED);
  });
  yield* walkFolder(folder, names, "", { ...options, roots, depth: 1 });
}

interface Step extends Options {
  roots: Roots;
  depth: number;
}

async function* walkFolder(
  folder: HeldFolder,
  names: readonly string[],
  prefix: string,
  step: Step,
): AsyncGenerator<Found, void, undefined> {
  for (const name of names) {
    if (!step.hidden && isHiddenName(name)) continue;
    const path = prefix + name;
    using entry = lookOrSkip(step.roots, folder, name);
    if (entry === undefined || entry.stats.isSymbolicLink()) yield { kind: "skipped" };
    else if (entry.stats.isDirectory()) {
      if (step.filter.isFolderWanted(path)) yield* walkChild(folder, name, path, step);
    } else if (step.filter.isFileWanted(path)) {
      yield entry.stats.isFile() && !looksSecret(name) ? { kind: "file", entry, path } : { kind: "skipped" };
    }
  }
}

async function* walkChild(
  parent: HeldFolder,
  name: string,
  path: string,
  step: Step,
): AsyncGenerator<Found, void, undefined> {
  using folder = step.depth < DEEPEST ? openOrSkip(step.roots, parent, name) : undefined;
  if (folder === undefined) {
    yield { kind: "skipped" };
    return;
  }
  yield { kind: "folder" };
  const names = await namesOf(folder).catch(() => []);
  yield* walkFolder(folder, names, `${path}/`, { ...step, depth: step.depth + 1 });
}

function lookOrSkip(roots: Roots, folder: HeldFolder, name: string): HeldEntry | undefined {
  try {
    return roots.lookChild(folder, name, NEED);
  } catch {
    return undefined;
  }
}

function openOrSkip(roots: Roots, folder: HeldFolder, name: string): HeldFolder | undefined {
  try {
    return roots.openChild(folder, name, NEED);
  } catch {
    return undefined;
  }
}

async function namesOf(folder: HeldFolder): Promise<string[]> {
  return (await readdir(folder.at())).sort();
}
