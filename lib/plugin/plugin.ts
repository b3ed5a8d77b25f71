import { readFile, realpath } from "node:fs/promises";
import { join } from "node:path";
import type { AnnouncedTool } from "../toolschema/announced-tool.ts";
import { describePlugin } from "./announce.ts";
import { contentDigest, fingerprintOf, isExecutable, listPlugin, type PluginEntry } from "./folder.ts";
import { PLUGIN_FILE, type PluginManifest, parseManifest } from "./manifest.ts";
import type { PluginProblem } from "./problem.ts";

/** A plugin that nothing is wrong with; whether its owner accepted it is another question. */
export interface Plugin {
  /** The real path. */
  folder: string;
  manifest: PluginManifest;
  /** Its tools as callers see them, in the order of the manifest. */
  tools: readonly AnnouncedTool[];
  /** SHA-256 in hex of all its files. */
  digest: string;
  /** See fingerprintOf: of the files as they were before they were read. */
  fingerprint: string;
}

/** The plugin, or everything that is wrong with it. */
export type ReadPlugin = { ok: true; plugin: Plugin } | { ok: false; problems: readonly PluginProblem[] };

/** Reads the plugin in a folder. Runs nothing of it. Never rejects: what cannot be read is a problem. */
export async function readPlugin(path: string): Promise<ReadPlugin> {
  try {
    const folder = await realpath(path);
    const entries = await listPlugin(folder);
    const parsed = parseManifest(await readFile(join(folder, PLUGIN_FILE)));
    if (!parsed.ok) return parsed;
    const { manifest } = parsed;
    const described = describePlugin(manifest);
    const missing = missingFiles(manifest, entries);
    if (!described.ok) return { ok: false, problems: [...described.problems, ...missing] };
    if (missing.length > 0) return { ok: false, problems: missing };
    const digest = await contentDigest(folder, entries);
    const plugin = { folder, manifest, tools: described.tools, digest, fingerprint: fingerprintOf(entries) };
    return { ok: true, plugin };
  } catch (error: unknown) {
    return { ok: false, problems: [{ line: undefined, message: wordsOf(error) }] };
  }
}

/** Whether a plugin's files are still those that were read. Looks into them only where something may have changed. */
export async function isUnchanged({ folder, digest, fingerprint }: Plugin): Promise<boolean> {
  try {
    const entries = await listPlugin(folder);
    return fingerprintOf(entries) === fingerprint || (await contentDigest(folder, entries)) === digest;
  } catch {
    return false;
  }
}

/** What the declarations name in the plugin's folder, and it does not hold. */
function missingFiles({ tools, servers }: PluginManifest, entries: readonly PluginEntry[]): PluginProblem[] {
  const found = new Map(entries.map(({ path, stats }) => [path, stats]));
  const programs = [...tools, ...servers.flatMap(({ place }) => (place.kind === "program" ? place : []))];
  return programs.flatMap(({ command, workDir, lines }) => {
    const problems: PluginProblem[] = [];
    const file = found.get(command.path);
    if (command.kind === "own" && !file?.isFile())
      problems.push({ line: lines.command, message: `command: ${command.path} is no file in the plugin's folder` });
    else if (command.kind === "own" && file !== undefined && !isExecutable(file))
      problems.push({
        line: lines.command,
        message: `command: ${command.path} cannot be run: chmod +x ${command.path}`,
      });
    if (!workDir.startsWith("/") && workDir !== "." && !found.get(workDir)?.isDirectory())
      problems.push({ line: lines.workDir, message: `work_dir: ${workDir} is no folder in the plugin's folder` });
    return problems;
  });
}

function wordsOf(error: unknown): string {
  const { code, path } = error as NodeJS.ErrnoException;
  if (code === "ENOENT" && path?.endsWith(PLUGIN_FILE)) return `it has no ${PLUGIN_FILE}`;
  return error instanceof Error ? error.message : String(error);
}
