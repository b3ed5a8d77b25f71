import { type Dirent, lstatSync, opendirSync, statSync } from "node:fs";
import { readFile } from "node:fs/promises";
import { join } from "node:path";
import { setImmediate as nextTurn } from "node:timers/promises";
import { asksToRead } from "../../../../lib/paths/asked-paths.ts";
import { isAtOrBelow, realPathOf } from "../../../../lib/paths/real-path.ts";
import { isSecret } from "../../../../lib/paths/secret-paths.ts";
import type { Mask, View } from "./view.ts";

/** What was found, with the lowest level that hides it. */
export interface FoundMask extends Mask {
  level: View["isolation"];
}

/** What is to be hidden in which folders. */
export interface MaskOptions {
  /** The granted folders, as real paths. */
  roots: readonly string[];
  /** Folders that belong to the agent. */
  hidden: readonly string[];
  /** How many names are looked at. Default 20,000. */
  limit?: number;
}

const DEFAULT_LIMIT = 20_000;

/**
 * So many folders are read before the event loop has its turn. One by one in a thread pool, a folder would cost five times as
 * much.
 */
const FOLDERS_AT_ONCE = 32;

/** It is shown too, whatever the roots are. */
const PROGRAMS = "/usr";

/** Folders that are large and hold what others have published. */
const SKIPPED = new Set(["node_modules", ".git", "proc", "sys", "dev"]);

/** Places of secrets in a home folder, which are looked at first whatever else lies in the roots. */
const IN_HOME = [".ssh", ".aws", ".gnupg", ".azure", ".kube", ".docker", ".config", ".cargo", ".claude", ".codex"];

/**
 * Finds what lies in the roots and must not be shown: the agent's own folders, and files and folders that may hold secrets by
 * their name (see isSecret); at read_only also files that are not read without a person being asked (see asksToRead), since what
 * runs there unasked reads whole trees. The nearest are looked at first, home folders before all. A symbolic link to a secret is
 * hidden where it leads, because what it names is what would be read. What lies deeper than the limit is not found.
 */
export async function findMasks({ roots, hidden, limit = DEFAULT_LIMIT }: MaskOptions): Promise<FoundMask[]> {
  const found = new Map<string, FoundMask>();
  const isIn = (path: string, folders: readonly string[]): boolean =>
    folders.some((folder) => isAtOrBelow(path, folder));
  const hide = (path: string, level: FoundMask["level"] = "workspace"): void => {
    const real = realPathOf(path);
    if (real === undefined || !isIn(real, [...roots, PROGRAMS])) return;
    if (found.get(real)?.level === "workspace") return;
    found.set(real, { path: real, kind: statSync(real).isDirectory() ? "folder" : "file", level });
  };
  for (const path of hidden) hide(path);
  const homes = (await homeFolders()).filter((home) => isIn(home, roots));
  const queue = [...homes.flatMap((home) => [home, ...IN_HOME.map((name) => join(home, name))]), ...roots].filter(
    isFolder,
  );
  const seen = new Set<string>();
  let left = limit;
  for (let at = 0; at < queue.length && left > 0; at++) {
    if (at % FOLDERS_AT_ONCE === 0) await nextTurn();
    const folder = queue[at] as string;
    if (seen.has(folder) || found.has(folder)) continue;
    seen.add(folder);
    for (const entry of entriesOf(folder)) {
      left--;
      const path = join(folder, entry.name);
      const names = path.split("/").slice(1);
      if (isSecret(names)) hide(path);
      else if (entry.isFile() && asksToRead(names)) hide(path, "read_only");
      else if (entry.isDirectory() && !SKIPPED.has(entry.name)) queue.push(path);
      if (left <= 0) break;
    }
  }
  return outermost([...found.values()]);
}

/** False too where it cannot be looked at. */
function isFolder(path: string): boolean {
  try {
    return lstatSync(path).isDirectory();
  } catch {
    return false;
  }
}

/** A folder that cannot be read cannot be read inside either. */
function* entriesOf(path: string): Generator<Dirent> {
  try {
    using folder = opendirSync(path, { bufferSize: 256 });
    for (let entry = folder.readSync(); entry !== null; entry = folder.readSync()) yield entry;
  } catch {
    return;
  }
}

async function homeFolders(): Promise<string[]> {
  const users = await readFile("/etc/passwd", "utf8").catch(() => "");
  const homes = users.split("\n").flatMap((line) => line.split(":")[5] ?? []);
  return [...new Set(homes)].filter((home) => home.startsWith("/") && home !== "/");
}

/** A mask in a masked folder has no place to be. */
function outermost(masks: readonly FoundMask[]): FoundMask[] {
  const folders = masks.filter(({ kind }) => kind === "folder").map(({ path }) => path);
  return masks.filter(({ path }) => !folders.some((folder) => folder !== path && isAtOrBelow(path, folder)));
}
