import { type Accepted, acceptedText, isToolAccepted } from "../../../../lib/plugin/accepted.ts";
import { announcePlugin } from "../../../../lib/plugin/announce.ts";
import { serverTools } from "../../../../lib/plugin/found-tools.ts";
import type { Plugin } from "../../../../lib/plugin/plugin.ts";
import type { ServerDeclaration } from "../../../../lib/plugin/server-declaration.ts";
import type { ServerTool } from "../../../../lib/plugin/server-tools.ts";
import type { ToolDeclaration } from "../../../../lib/plugin/tool-declaration.ts";
import { announcedName } from "../../../../lib/toolschema/names.ts";
import type { Executor } from "../../executor/executor.ts";
import type { ProgramStarter } from "../../executor/open-program.ts";
import type { Announcement, ProvidedTools, ToolProvider, UnavailableTool } from "../provider.ts";
import type { Bridge } from "./mcp/bridge.ts";
import { pluginTool } from "./plugin-tool.ts";
import { acceptHint, type Environment, whyNotProgram, whyUnset } from "./program.ts";
import { type PluginPlace, type ScannedPlugins, scanPlugins } from "./scan.ts";
import { createTurns, type Turns } from "./turns.ts";

/** How often the folder is looked at, in milliseconds: what the owner accepted is used without a restart. */
const REFRESH_MS = 5000;

/** What the tools of plugins run with. */
export interface PluginMachine {
  executor: Pick<Executor, "isolation" | "shortfall" | "resolve"> & ProgramStarter;
  /** The agent's environment, of which plugins get what their env_allow names. */
  env: Environment;
}

/** What a plugin's tools are made with. */
interface Parts {
  machine: PluginMachine;
  accepted: Accepted;
  /** Turns by the tools' names, so that a call of a plugin as it was and one of it as it is now do not run at a time either. */
  turns: Map<string, Turns>;
  /** Undefined where no plugin has an MCP server. */
  bridge: Bridge | undefined;
}

/**
 * The tools that the plugins in a folder declare, and those of their MCP servers: what the owner accepted exactly as it is, and
 * whose programs this machine can run as far apart as they have to be. The others are unavailable, each with the reason. Never
 * rejects.
 */
export async function openPluginTools(
  place: PluginPlace,
  machine: PluginMachine,
  { refreshMs = REFRESH_MS }: { refreshMs?: number } = {},
): Promise<ToolProvider> {
  const turns = new Map<string, Turns>();
  const listeners = new Set<() => void>();
  const whyNot = (server: ServerDeclaration) => whyNotServer(server, machine);
  let bridge: Bridge | undefined;
  let scanned: ScannedPlugins = { plugins: [], refused: [], accepted: new Map() };
  let provided: ProvidedTools;
  const provide = (): void => {
    provided = providedBy(scanned, { machine, turns, bridge, accepted: scanned.accepted });
  };
  const change = (): void => {
    provide();
    for (const listener of listeners) listener();
  };
  const scan = async (): Promise<ScannedPlugins> => {
    const next = await scanPlugins(place, scanned.plugins);
    if (bridge === undefined && next.plugins.some(({ manifest }) => manifest.servers.length > 0)) {
      // Not before: a device without such a plugin has no use for it.
      const { openBridge } = await import("./mcp/bridge.ts");
      bridge = await openBridge({ machine, foundFile: place.foundFile, onChange: () => change() });
    }
    bridge?.use(next.plugins, whyNot);
    return next;
  };
  const refresh = async (): Promise<void> => {
    const next = await scan();
    const isSame = stateOf(next) === stateOf(scanned);
    scanned = next;
    if (!isSame) change();
  };
  scanned = await scan();
  provide();
  // Looks again only when the last look has ended, and keeps no process alive.
  let timer: NodeJS.Timeout | undefined;
  const schedule = (): void => {
    timer = setTimeout(() => void refresh().finally(() => timer && schedule()), refreshMs).unref();
  };
  schedule();
  return {
    provided: () => provided,
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    [Symbol.dispose]() {
      clearTimeout(timer);
      timer = undefined;
      listeners.clear();
      bridge?.[Symbol.dispose]();
    },
  };
}

/** The same for the same plugins and what was accepted of them, whenever they were read. */
function stateOf({ plugins, refused, accepted }: ScannedPlugins): string {
  return JSON.stringify([plugins.map(({ folder, digest }) => [folder, digest]), refused, acceptedText(accepted)]);
}

function providedBy({ plugins, refused }: ScannedPlugins, parts: Parts): ProvidedTools {
  const announced = plugins.map((plugin) => announce(plugin, parts));
  return {
    tools: [],
    known: [],
    announced: announced.flatMap(({ announcement }) => announcement ?? []),
    unavailable: [...refused, ...announced.flatMap(({ unavailable }) => unavailable)],
  };
}

function announce(
  plugin: Plugin,
  parts: Parts,
): { announcement: Announcement | undefined; unavailable: UnavailableTool[] } {
  const { manifest } = plugin;
  const { machine, bridge } = parts;
  const declared = new Map<string, ToolDeclaration>();
  const unavailable: UnavailableTool[] = [];
  for (const declaration of manifest.tools) {
    const tool = announcedName(manifest.name, declaration.name);
    const why = whyNotProgram(declaration, machine.executor, machine.env);
    if (why === undefined) declared.set(tool, declaration);
    else unavailable.push({ tool, program: declaration.command.path, why });
  }
  const { bridged, missing } = bridgedBy(plugin, parts);
  unavailable.push(...missing);
  if (declared.size + bridged.size === 0) return { announcement: undefined, unavailable };
  const definition = announcePlugin(manifest, [...declared.values()], [...bridged.values()]);
  const implement: Announcement["implement"] = (tool) => {
    const { name } = tool.spec;
    const listed = bridged.get(name);
    if (listed !== undefined && bridge !== undefined) return bridge.implement(plugin, listed, tool);
    const declaration = declared.get(name);
    if (declaration === undefined) throw new Error(`${name} is not declared`);
    const turns = declaration.concurrencySafe ? undefined : turnsOf(name, parts.turns);
    return pluginTool({ tool, declaration, plugin, env: machine.env, turns });
  };
  return { announcement: { definition, implement }, unavailable };
}

/** The tools of a plugin's servers that may be offered, by their full names, and why the others may not. */
function bridgedBy(
  plugin: Plugin,
  { machine, accepted, bridge }: Parts,
): { bridged: Map<string, ServerTool>; missing: UnavailableTool[] } {
  const { manifest, folder } = plugin;
  const bridged = new Map<string, ServerTool>();
  const missing: UnavailableTool[] = [];
  const refuse = (name: string, server: string, why: string): void => {
    missing.push({ tool: announcedName(manifest.name, name), program: server, why });
  };
  const usable = manifest.servers.filter((server) => {
    const whyNot = whyNotServer(server, machine);
    const isKnown = bridge?.found(plugin).has(server.name) === true;
    if (whyNot !== undefined || !isKnown)
      refuse(server.name, server.name, whyNot ?? bridge?.problem(plugin, server) ?? "it has not listed its tools yet");
    return whyNot === undefined;
  });
  const { tools, unusable } = serverTools({ ...manifest, servers: usable }, bridge?.found(plugin) ?? new Map());
  for (const { name, why } of unusable) refuse(name, manifest.name, why);
  for (const tool of tools) {
    if (isToolAccepted(manifest.name, tool, accepted)) bridged.set(announcedName(manifest.name, tool.name), tool);
    else refuse(tool.name, tool.server.name, `${stateOfTool(manifest.name, tool, accepted)}: ${acceptHint(folder)}`);
  }
  return { bridged, missing };
}

function stateOfTool(plugin: string, { name }: ServerTool, accepted: Accepted): string {
  const before = accepted.get(plugin)?.tools.has(announcedName(plugin, name)) === true;
  return before
    ? "its MCP server describes it in another way than it was accepted"
    : "its MCP server lists it, and it was not accepted by the machine's owner";
}

function whyNotServer({ place }: ServerDeclaration, { executor, env }: PluginMachine): string | undefined {
  return place.kind === "program" ? whyNotProgram(place, executor, env) : whyUnset(place.headers, env);
}

function turnsOf(name: string, turns: Map<string, Turns>): Turns {
  const own = turns.get(name) ?? createTurns();
  turns.set(name, own);
  return own;
}
