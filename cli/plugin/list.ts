import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Accepted, isAccepted, readAccepted } from "../../lib/plugin/accepted.ts";
import { type ReadPlugin, readPlugin } from "../../lib/plugin/plugin.ts";
import { problemText } from "../../lib/plugin/problem.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { jsonDocument } from "../print/json.ts";
import { listTable } from "../print/table.ts";
import type { JsonFlag } from "./check.ts";
import { pluginJson, problemsJson } from "./describe.ts";
import { acceptedFile, type StateDirFlag } from "./state-dir.ts";

/** The options of `reeve plugin list`. */
export type ListPluginsFlags = JsonFlag & StateDirFlag & { plugins?: string };

/** A folder that may be a plugin. */
interface Found {
  folder: string;
  read: ReadPlugin;
  state: "accepted" | "new" | "changed" | "wrong";
}

/** `reeve plugin list`: the plugins of a folder, and what a device does with them. */
export async function list(flags: ListPluginsFlags, context: CommandContext): Promise<void> {
  const folder = flags.plugins || context.env.REEVE_DEVICE_PLUGINS;
  if (!folder) throw new UsageError("no folder of plugins is named", ["--plugins FOLDER, or REEVE_DEVICE_PLUGINS"]);
  const accepted = await readAccepted(acceptedFile(flags, context));
  const found = await Promise.all((await foldersIn(resolve(folder))).map((path) => look(path, accepted)));
  if (flags.json) return void context.stdout.write(jsonDocument({ plugins: found.map(asJson) }));
  if (found.length === 0) context.stderr.write(`reeve: ${folder} holds no plugin\n`);
  const rows = found.map(({ folder: path, read, state }) => [
    read.ok ? read.plugin.manifest.name : "",
    state,
    read.ok ? read.plugin.tools.map(({ spec }) => spec.name).join(" ") : read.problems.map(problemText).join("; "),
    path,
  ]);
  const colors = { STATE: { accepted: "green", new: "yellow", changed: "yellow", wrong: "red" } } as const;
  const columns = ["NAME", "STATE", "TOOLS", "FOLDER"];
  context.stdout.write(listTable(columns, rows, context, { keep: ["NAME", "FOLDER"], colors }));
}

async function foldersIn(folder: string): Promise<string[]> {
  const entries = await readdir(folder, { withFileTypes: true }).catch((error: unknown) => {
    throw new UsageError(`${folder} cannot be read`, [], { cause: error });
  });
  return entries
    .filter((entry) => (entry.isDirectory() || entry.isSymbolicLink()) && !entry.name.startsWith("."))
    .map(({ name }) => join(folder, name))
    .sort();
}

async function look(folder: string, accepted: Accepted): Promise<Found> {
  const read = await readPlugin(folder);
  if (!read.ok) return { folder, read, state: "wrong" };
  if (isAccepted(read.plugin, accepted)) return { folder, read, state: "accepted" };
  return { folder, read, state: accepted.has(read.plugin.manifest.name) ? "changed" : "new" };
}

function asJson({ folder, read, state }: Found) {
  return read.ok ? { state, ...pluginJson(read.plugin) } : { state, folder, problems: problemsJson(read.problems) };
}
