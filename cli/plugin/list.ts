import { readdir } from "node:fs/promises";
import { join, resolve } from "node:path";
import { type Accepted, isAccepted, isToolAccepted, readAccepted } from "../../lib/plugin/accepted.ts";
import { type Found as FoundTools, readFound, serverTools } from "../../lib/plugin/found-tools.ts";
import { type ReadPlugin, readPlugin } from "../../lib/plugin/plugin.ts";
import { problemText } from "../../lib/plugin/problem.ts";
import type { ServerTool } from "../../lib/plugin/server-tools.ts";
import { announcedName } from "../../lib/toolschema/names.ts";
import type { CommandContext } from "../command-context.ts";
import type { StateDirFlag } from "../device-state-dir.ts";
import { UsageError } from "../errors/usage-error.ts";
import { jsonDocument } from "../print/json.ts";
import { listTable } from "../print/table.ts";
import type { JsonFlag } from "./check.ts";
import { pluginJson, problemsJson } from "./describe.ts";
import { serverToolsJson, serverToolsText } from "./describe-servers.ts";
import { pluginFiles } from "./state-dir.ts";

/** The options of `reeve plugin list`. */
export type ListPluginsFlags = JsonFlag & StateDirFlag & { plugins?: string };

/** A folder that may be a plugin. */
interface Found {
  folder: string;
  read: ReadPlugin;
  /** "listed": it was accepted, and its MCP servers list tools that were not. */
  state: "accepted" | "listed" | "new" | "changed" | "wrong";
  /** Tools of its MCP servers, and those of them that were not accepted as they are. */
  servers: readonly ServerTool[];
  open: readonly ServerTool[];
}

/** `reeve plugin list`: the plugins of a folder, and what a device does with them. */
export async function list(flags: ListPluginsFlags, context: CommandContext): Promise<void> {
  const folder = flags.plugins || context.env.REEVE_DEVICE_PLUGINS;
  if (!folder) throw new UsageError("no folder of plugins is named", ["--plugins FOLDER, or REEVE_DEVICE_PLUGINS"]);
  const files = pluginFiles(flags, context);
  const [accepted, listed] = [await readAccepted(files.accepted), await readFound(files.found)];
  const found = await Promise.all((await foldersIn(resolve(folder))).map((path) => look(path, accepted, listed)));
  if (flags.json) return void context.stdout.write(jsonDocument({ plugins: found.map(asJson) }));
  if (found.length === 0) context.stderr.write(`reeve: ${folder} holds no plugin\n`);
  const rows = found.map((one) => [one.read.ok ? one.read.plugin.manifest.name : "", one.state, what(one), one.folder]);
  const colors = {
    STATE: { accepted: "green", listed: "yellow", new: "yellow", changed: "yellow", wrong: "red" },
  } as const;
  const columns = ["NAME", "STATE", "TOOLS", "FOLDER"];
  context.stdout.write(listTable(columns, rows, context, { keep: ["NAME", "FOLDER"], colors }));
  for (const { read, open } of found)
    if (read.ok && open.length > 0)
      context.stdout.write(`\nNot accepted yet:\n${serverToolsText(read.plugin.manifest.name, open)}`);
}

function what({ read, servers }: Found): string {
  if (!read.ok) return read.problems.map(problemText).join("; ");
  const { manifest, tools } = read.plugin;
  return [...tools.map(({ spec }) => spec.name), ...servers.map(({ name }) => announcedName(manifest.name, name))].join(
    " ",
  );
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

async function look(folder: string, accepted: Accepted, listed: FoundTools): Promise<Found> {
  const read = await readPlugin(folder);
  if (!read.ok) return { folder, read, state: "wrong", servers: [], open: [] };
  const { manifest, digest } = read.plugin;
  const before = listed.get(manifest.name);
  const servers = before?.digest === digest ? serverTools(manifest, before.servers).tools : [];
  const open = servers.filter((tool) => !isToolAccepted(manifest.name, tool, accepted));
  const all = { folder, read, servers, open };
  if (isAccepted(read.plugin, accepted)) return { ...all, state: open.length > 0 ? "listed" : "accepted" };
  return { ...all, state: accepted.has(manifest.name) ? "changed" : "new" };
}

function asJson({ folder, read, state, servers, open }: Found) {
  if (!read.ok) return { state, folder, problems: problemsJson(read.problems) };
  const { name } = read.plugin.manifest;
  const [serverTools, notAccepted] = [
    serverToolsJson(name, servers),
    open.map((tool) => announcedName(name, tool.name)),
  ];
  return { state, ...pluginJson(read.plugin), serverTools, notAccepted };
}
