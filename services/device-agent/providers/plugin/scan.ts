import { readdir, realpath } from "node:fs/promises";
import { join } from "node:path";
import { type Accepted, isAccepted, readAccepted } from "../../../../lib/plugin/accepted.ts";
import { fingerprintOf, listPlugin } from "../../../../lib/plugin/folder.ts";
import { type Plugin, type ReadPlugin, readPlugin } from "../../../../lib/plugin/plugin.ts";
import { problemText } from "../../../../lib/plugin/problem.ts";
import { cleanText } from "../../../../lib/toolschema/announced-tool.ts";
import { whyUnsafe } from "../../executor/program-folders.ts";
import type { UnavailableTool } from "../provider.ts";
import { type OwnerPins, whyNotPinned } from "./owner-pins.ts";
import { acceptHint } from "./program.ts";

/** Where plugins come from. */
export interface PluginPlace {
  /** The folder that holds the plugins' folders. */
  folder: string;
  /** What the owner accepted. */
  acceptedFile: string;
  /** What the plugins' MCP servers listed. */
  foundFile: string;
  /** Folders that callers may write. Real paths. */
  writeRoots: readonly string[];
  /** The agent's own folders. Absolute. */
  hidden: readonly string[];
  /** The owner's manifest, which pins plugins and says which variables they may be given. Undefined: there is none. */
  owner?: OwnerPins | undefined;
  /** Names that the owner gave to other sources of tools. */
  taken: ReadonlySet<string>;
}

/** The plugins that may be used, and why the others may not. */
export interface ScannedPlugins {
  plugins: readonly Plugin[];
  refused: readonly UnavailableTool[];
  accepted: Accepted;
}

/** The longest reason, in characters. */
const MAX_WHY = 500;

/**
 * Reads all plugins of a folder, in the order of their folders' names. One that is wrong leaves the others alone. Never rejects.
 *
 * @param known what was read before, by folder: those whose files have not changed are not read again.
 */
export async function scanPlugins(place: PluginPlace, known: readonly Plugin[]): Promise<ScannedPlugins> {
  const plugins: Plugin[] = [];
  const refused: UnavailableTool[] = [];
  const refuse = (name: string, why: string): void => {
    const program = cleanText(name.slice(0, 64));
    refused.push({ tool: program, program, why: cleanText(why.slice(0, MAX_WHY)) });
  };
  try {
    const accepted = await readAccepted(place.acceptedFile);
    for (const entry of await foldersIn(place)) {
      const read = await usablePlugin(join(place.folder, entry), { ...place, accepted, known }).catch(String);
      if (typeof read === "string") refuse(entry, read);
      else if (plugins.some(({ manifest }) => manifest.name === read.manifest.name))
        refuse(entry, `another plugin has the name "${read.manifest.name}"`);
      else plugins.push(read);
    }
    return { plugins, refused, accepted };
  } catch (error: unknown) {
    refuse("plugins", `no plugin is used: ${error instanceof Error ? error.message : String(error)}`);
    return { plugins: [], refused, accepted: new Map() };
  }
}

/** Throws an Error where a caller or another user could put a plugin there. */
async function foldersIn({ folder, writeRoots }: PluginPlace): Promise<string[]> {
  const why = whyUnsafe(folder, writeRoots);
  if (why !== undefined) throw new Error(`${folder} ${why}`);
  const entries = await readdir(folder, { withFileTypes: true });
  // A link to a plugin that is being written elsewhere is the owner's own.
  const isPlugin = (entry: (typeof entries)[number]) => entry.isDirectory() || entry.isSymbolicLink();
  return entries
    .filter(isPlugin)
    .flatMap(({ name }) => (name.startsWith(".") ? [] : name))
    .sort();
}

interface Usable extends PluginPlace {
  accepted: Accepted;
  known: readonly Plugin[];
}

/** The plugin, or why it may not be used. */
async function usablePlugin(path: string, { accepted, known, ...place }: Usable): Promise<Plugin | string> {
  const why = whyUnsafe(path, place.writeRoots);
  if (why !== undefined) return `it ${why}`;
  const folder = await realpath(path);
  if (place.hidden.some((own) => folder === own || folder.startsWith(`${own}/`)))
    return "it lies in a folder that belongs to Reeve, which no program may see";
  const read = await readAgain(folder, known);
  if (!read.ok) return read.problems.map(problemText).join("; ");
  const { plugin } = read;
  const { name } = plugin.manifest;
  if (place.taken.has(name)) return `the name "${name}" belongs to a service of the machine`;
  const refused = place.owner && whyNotPinned(plugin, place.owner);
  if (refused !== undefined) return refused;
  if (isAccepted(plugin, accepted)) return plugin;
  const state = accepted.has(name) ? "has changed since it was accepted" : "was not accepted by the machine's owner";
  return `it ${state}: ${acceptHint(folder)}`;
}

/** What was read before, where no file has changed since. */
async function readAgain(folder: string, known: readonly Plugin[]): Promise<ReadPlugin> {
  const before = known.find((one) => one.folder === folder);
  return before !== undefined && (await isSame(before)) ? { ok: true, plugin: before } : await readPlugin(folder);
}

async function isSame({ folder, fingerprint }: Plugin): Promise<boolean> {
  return await listPlugin(folder).then(
    (entries) => fingerprintOf(entries) === fingerprint,
    () => false,
  );
}
