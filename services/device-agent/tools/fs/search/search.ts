import { basename } from "node:path";
import { setImmediate } from "node:timers/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import {
  type SearchFilesRequest,
  type SearchFilesResponseSchema,
  SearchLimit,
  type SearchMatchSchema,
} from "../../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import type { HeldEntry } from "../../../roots/held.ts";
import { openHeldFile } from "../../../roots/held-file.ts";
import { throwIfAborted } from "../../outcome.ts";
import type { ToolContext } from "../../tool.ts";
import { compilePattern, type LineTest } from "./compile-pattern.ts";
import { createPathFilter, type PathFilter } from "./globs.ts";
import { readText } from "./read-text.ts";
import { searchText } from "./search-text.ts";
import { walkFiles } from "./walk-files.ts";

const DEFAULT_MATCHES = 200;

/** The limits of one search that no caller sets. */
const LIMITS = {
  /** Files and folders that are looked at. */
  entries: 20_000,
  bytes: 256 * 1024 * 1024,
  /** Of the texts that are returned, in characters. */
  text: 512 * 1024,
  ms: 10_000,
};

/** How long one search keeps the agent from other work at a time, in milliseconds. */
const SLICE_MS = 10;

interface Search {
  context: ToolContext;
  isMatch: LineTest;
  contextLines: number;
  matches: MessageInitShape<typeof SearchMatchSchema>[];
  maxMatches: number;
  textLength: number;
  entries: number;
  files: number;
  skipped: number;
  bytes: number;
  deadlineMs: number;
  /** When other work had its turn. */
  pausedMs: number;
}

/** Ends a search at one of its limits. What was found until then is returned. */
class LimitReached extends Error {
  readonly limit: SearchLimit;
  constructor(limit: SearchLimit) {
    super("a limit of the search was reached");
    this.limit = limit;
  }
}

/**
 * fs.search: lines that match, by path. It walks descriptors, as fs.list does, opens regular files only, and passes over
 * secrets, names that begin with a dot, binary files and files with several names.
 */
export async function searchFiles(
  { path, pattern, literal, ignoreCase, globs, hidden, maxMatches, contextLines }: SearchFilesRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof SearchFilesResponseSchema>> {
  const filter = createPathFilter(globs);
  const now = performance.now();
  const search: Search = {
    ...{ context, contextLines, isMatch: compilePattern(pattern, { literal, ignoreCase }) },
    ...{ matches: [], maxMatches: maxMatches || DEFAULT_MATCHES, textLength: 0 },
    ...{ entries: 0, files: 0, skipped: 0, bytes: 0 },
    // Some of the call's time is left to report what was found.
    ...{ deadlineMs: now + Math.min(LIMITS.ms, context.timeoutMs * 0.8), pausedMs: now },
  };
  const stoppedBy = await run(search, path, filter, hidden);
  const { matches, files, skipped, bytes } = search;
  return { matches, files: BigInt(files), skipped: BigInt(skipped), bytes: BigInt(bytes), stoppedBy };
}

async function run(search: Search, path: string, filter: PathFilter, hidden: boolean): Promise<SearchLimit> {
  try {
    throwIfAborted(search.context);
    for await (const found of walkFiles(path, search.context.roots, { filter, hidden })) {
      if (++search.entries > LIMITS.entries) return SearchLimit.FILES;
      if (isDue(search)) await pause(search);
      if (found.kind === "skipped") search.skipped++;
      if (found.kind === "file") await searchFile(search, found.entry, found.path || basename(path));
    }
    return SearchLimit.UNSPECIFIED;
  } catch (error: unknown) {
    if (error instanceof LimitReached) return error.limit;
    throw error;
  }
}

async function searchFile(search: Search, entry: HeldEntry, path: string): Promise<void> {
  const text = await textOf(entry);
  if (text === undefined) {
    search.skipped++;
    return;
  }
  search.files++;
  search.bytes += entry.stats.size;
  if (search.bytes > LIMITS.bytes) throw new LimitReached(SearchLimit.BYTES);
  for (const match of searchText(text, search.isMatch, search.contextLines)) {
    if (isDue(search)) await pause(search);
    if (match === undefined) continue;
    if (search.matches.length === search.maxMatches || search.textLength > LIMITS.text)
      throw new LimitReached(SearchLimit.MATCHES);
    const { line, ...texts } = match;
    search.matches.push({ path, line: BigInt(line), ...texts });
    search.textLength += [match.text, ...match.before, ...match.after].reduce((sum, one) => sum + one.length, 0);
  }
}

/** The text of a file that may be read and is text. */
async function textOf(entry: HeldEntry): Promise<string | undefined> {
  try {
    using file = openHeldFile(entry, entry.path, { access: "read", field: "path" });
    return await readText(file);
  } catch {
    // One file that cannot be read does not end a search.
    return undefined;
  }
}

/** Whether other work has waited for long enough. */
function isDue({ pausedMs }: Search): boolean {
  return performance.now() - pausedMs > SLICE_MS;
}

/** Lets other work have its turn, and looks whether the search may go on. */
async function pause(search: Search): Promise<void> {
  await setImmediate();
  search.pausedMs = performance.now();
  throwIfAborted(search.context);
  if (search.pausedMs > search.deadlineMs) throw new LimitReached(SearchLimit.TIME);
}
