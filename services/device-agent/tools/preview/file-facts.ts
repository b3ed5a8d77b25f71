import { isUtf8 } from "node:buffer";
import { readdir } from "node:fs/promises";
import { sha256Hex } from "../../../../lib/sign/canonical.ts";
import type { PreviewFact } from "../../../../lib/tool/preview.ts";
import type { HeldEntry } from "../../roots/held.ts";
import type { HeldParent } from "../../roots/roots.ts";
import { NotUndoable } from "../../undo/change.ts";
import { readEntry } from "../fs/keep.ts";
import { maskSecrets } from "../fs/search/search-text.ts";
import { throwIfAborted } from "../outcome.ts";
import type { ToolContext } from "../tool.ts";
import { lineDiff } from "./line-diff.ts";

const NEED = { access: "write", field: "path" } as const;

/** The largest file whose content is compared, in bytes. Of a larger one its size and time are. */
const LARGEST = 16 * 1024 * 1024;

/** The largest text of which lines are shown, in bytes. */
const LARGEST_TEXT = 1024 * 1024;

/** How many things of a folder are compared. */
const MOST_THINGS = 10_000;

/** What a place has now: what it is, and what distinguishes its content from any other. */
export async function factsOfPlace(place: HeldParent, name: string, context: ToolContext): Promise<PreviewFact[]> {
  using entry = place.look();
  if (entry === undefined) return [{ name, value: "nothing has this name" }];
  const { stats, linkTarget } = entry;
  if (stats.isSymbolicLink()) return [{ name, value: `a symbolic link to ${linkTarget}` }];
  const permissions = (stats.mode & 0o7777).toString(8).padStart(4, "0");
  const held = `permissions ${permissions}, owner ${stats.uid}:${stats.gid}`;
  if (stats.isFile())
    return [{ name, value: `a file of ${stats.size} bytes, ${held}` }, await contentFact(entry, name)];
  if (!stats.isDirectory()) return [{ name, value: `a device, socket or pipe, ${held}` }];
  return [{ name, value: `a folder, ${held}` }, ...(await folderFacts(place, name, context))];
}

async function contentFact(entry: HeldEntry, name: string): Promise<PreviewFact> {
  const bytes = await bytesOf(entry);
  if (bytes === undefined) return { name: `time of ${name}`, value: entry.stats.mtime.toISOString() };
  return { name: `content of ${name}`, value: `SHA-256 ${sha256Hex(bytes)}`, isContent: true };
}

async function bytesOf(entry: HeldEntry): Promise<Buffer | undefined> {
  try {
    return await readEntry(entry, LARGEST);
  } catch (error: unknown) {
    if (error instanceof NotUndoable) return undefined;
    throw error;
  }
}

interface Listing {
  lines: string[];
  folders: number;
  bytes: number;
}

/** What is in a folder, at every depth: how much it is, the names, and each one's size and time in a digest. */
async function folderFacts(place: HeldParent, name: string, context: ToolContext): Promise<PreviewFact[]> {
  const listing: Listing = { lines: [], folders: 0, bytes: 0 };
  await listInto(listing, place.folder, place.name, "", context);
  const { lines, folders, bytes } = listing;
  if (lines.length > MOST_THINGS)
    return [{ name: `content of ${name}`, value: `more than ${MOST_THINGS} things, which are not compared` }];
  const holds = `${lines.length - folders} files and ${folders} folders, ${bytes} bytes`;
  return [
    { name: `size of ${name}`, value: holds },
    { name: `content of ${name}`, value: lines.sort().join("\n"), isContent: true },
  ];
}

async function listInto(
  listing: Listing,
  parent: HeldParent["folder"],
  name: string,
  prefix: string,
  context: ToolContext,
): Promise<void> {
  throwIfAborted(context);
  using folder = context.roots.openChild(parent, name, NEED);
  for (const inner of (await readdir(folder.at())).sort()) {
    if (listing.lines.length > MOST_THINGS) return;
    using entry = context.roots.lookChild(folder, inner, NEED);
    if (entry === undefined) continue;
    const { stats } = entry;
    listing.lines.push(
      `${prefix}${inner}, ${stats.isDirectory() ? "a folder" : `${stats.size} bytes`}, ${stats.mtime.toISOString()}`,
    );
    if (!stats.isDirectory()) {
      listing.bytes += stats.size;
      continue;
    }
    listing.folders++;
    await listInto(listing, folder, inner, `${prefix}${inner}/`, context);
  }
}

/** The lines that a change of a text file takes and brings, without secrets. None where one of the two is no text, or too large. */
export function diffFacts(before: Buffer, after: Buffer): PreviewFact[] {
  if (before.length > LARGEST_TEXT || after.length > LARGEST_TEXT) return [];
  if (!isText(before) || !isText(after)) return [];
  const [old, now] = [before, after].map((bytes) => maskSecrets(bytes.toString("utf8")));
  return [{ name: "change", value: lineDiff(old ?? "", now ?? ""), isContent: true }];
}

function isText(bytes: Buffer): boolean {
  return isUtf8(bytes) && !bytes.includes(0);
}
