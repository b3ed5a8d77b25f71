import { createHash } from "node:crypto";
import type { BigIntStats } from "node:fs";
import { lstat, opendir, readFile } from "node:fs/promises";
import { join } from "node:path";
import { sha256Hex } from "../sign/canonical.ts";

/** A file or folder of a plugin. */
export interface PluginEntry {
  /** Its path in the plugin's folder. */
  path: string;
  stats: BigIntStats;
}

/** The most of a plugin: enough for a program with its own libraries. */
const MAX_ENTRIES = 5000;
const MAX_BYTES = 64n * 1024n * 1024n;

/**
 * Everything in a plugin's folder, sorted. Throws an Error that says what is wrong: a symbolic link or a special file, which would
 * have a content that is not the plugin's; a file that other users may change; more than the limits.
 */
export async function listPlugin(folder: string): Promise<PluginEntry[]> {
  const entries: PluginEntry[] = [];
  let bytes = 0n;
  for (const left = [""]; left.length > 0; ) {
    const path = left.pop() ?? "";
    const stats = await lstat(join(folder, path), { bigint: true });
    requireOwn(path, stats);
    entries.push({ path, stats });
    if (stats.isFile()) bytes += stats.size;
    if (entries.length > MAX_ENTRIES) throw new Error(`it holds more than ${MAX_ENTRIES} files`);
    if (bytes > MAX_BYTES) throw new Error(`it holds more than ${MAX_BYTES} bytes`);
    if (!stats.isDirectory()) continue;
    for await (const entry of await opendir(join(folder, path))) left.push(join(path, entry.name));
  }
  return entries.sort((a, b) => (a.path < b.path ? -1 : 1));
}

const OTHERS_WRITE = 0o022n;

function requireOwn(path: string, stats: BigIntStats): void {
  const name = path === "" ? "the plugin's folder" : path;
  if (!stats.isFile() && !stats.isDirectory()) throw new Error(`${name} is neither a file nor a folder`);
  if (process.platform === "win32") return;
  const owner = Number(stats.uid);
  if (owner !== 0 && owner !== process.getuid?.()) throw new Error(`${name} belongs to another user`);
  if ((stats.mode & OTHERS_WRITE) !== 0n)
    throw new Error(`${name} may be changed by others: chmod go-w ${name === path ? path : "it"}`);
}

/** Changes whenever something in the folder may have changed; costs no reading of files. */
export function fingerprintOf(entries: readonly PluginEntry[]): string {
  const lines = entries.map(({ path, stats: { ino, size, mode, mtimeNs, ctimeNs } }) =>
    [JSON.stringify(path), ino, size, mode, mtimeNs, ctimeNs].join(" "),
  );
  return sha256Hex(lines.join("\n"));
}

/** What a plugin is, whatever its folder is called: SHA-256 in hex over the paths, contents and executable bits of its files. */
export async function contentDigest(folder: string, entries: readonly PluginEntry[]): Promise<string> {
  const digest = createHash("sha256").update("reeve plugin 1\n");
  for (const { path, stats } of entries) {
    if (!stats.isFile()) continue;
    const content = sha256Hex(await readFile(join(folder, path)));
    digest.update(`${isExecutable(stats) ? "x" : "-"} ${content} ${JSON.stringify(path)}\n`);
  }
  return digest.digest("hex");
}

/** Whether its owner may run the file. */
export function isExecutable({ mode }: BigIntStats): boolean {
  return (mode & 0o100n) !== 0n;
}
