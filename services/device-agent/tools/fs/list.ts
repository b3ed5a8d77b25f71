import { type Dirent, lstatSync, type Stats } from "node:fs";
import { readdir } from "node:fs/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import type {
  FileEntrySchema,
  ListRequest,
  ListResponseSchema,
} from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import type { HeldFolder } from "../../roots/held.ts";
import { asFault } from "../../roots/refusals.ts";
import { throwIfAborted } from "../outcome.ts";
import type { ToolContext } from "../tool.ts";
import { timeOf, typeOf } from "./stat.ts";

const DEFAULT_ENTRIES = 1000;

type Entry = MessageInitShape<typeof FileEntrySchema>;

interface Listing {
  context: ToolContext;
  entries: Entry[];
  limit: number;
  skipHidden: boolean;
}

/**
 * fs.list: a folder's entries by name, each folder's own entries right after it. Goes through no symbolic link. A
 * sub-folder that cannot be opened, or that holds secrets, is listed without its entries.
 */
export async function listFolder(
  { path, depth, maxEntries, skipHidden }: ListRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof ListResponseSchema>> {
  const need = { access: "read", field: "path" } as const;
  const limit = maxEntries || DEFAULT_ENTRIES;
  // One more than asked for shows that there are more.
  const listing: Listing = { context, entries: [], limit: limit + 1, skipHidden };
  using folder = context.roots.openFolder(path, need);
  const names = await namesOf(folder).catch((error: unknown) => {
    throw asFault(error, path, need);
  });
  await listInto(listing, folder, names, "", depth || 1);
  return { entries: listing.entries.slice(0, limit), truncated: listing.entries.length > limit };
}

async function listInto(listing: Listing, folder: HeldFolder, names: Dirent[], prefix: string, depth: number) {
  throwIfAborted(listing.context);
  for (const { name } of names) {
    if (listing.entries.length >= listing.limit) return;
    if (listing.skipHidden && name.startsWith(".")) continue;
    const stats = lstatSync(folder.at(name), { throwIfNoEntry: false });
    if (stats === undefined) continue;
    listing.entries.push(entryOf(prefix + name, stats));
    if (depth > 1 && stats.isDirectory()) await listChild(listing, folder, name, `${prefix}${name}/`, depth - 1);
  }
}

async function listChild(listing: Listing, parent: HeldFolder, name: string, prefix: string, depth: number) {
  const opened = openOrSkip(listing, parent, name);
  if (opened === undefined) return;
  using folder = opened;
  const names = await namesOf(folder).catch(() => []);
  await listInto(listing, folder, names, prefix, depth);
}

function openOrSkip(listing: Listing, parent: HeldFolder, name: string): HeldFolder | undefined {
  try {
    return listing.context.roots.openChild(parent, name, { access: "read", field: "path" });
  } catch {
    return undefined;
  }
}

async function namesOf(folder: HeldFolder): Promise<Dirent[]> {
  const names = await readdir(folder.at(), { withFileTypes: true });
  return names.sort((a, b) => (a.name < b.name ? -1 : 1));
}

function entryOf(path: string, stats: Stats): Entry {
  const size = stats.isDirectory() ? 0n : BigInt(stats.size);
  return { path, type: typeOf(stats), size, modifyTime: timeOf(stats.mtimeMs) };
}
