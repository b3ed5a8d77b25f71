import { announcePlugin } from "../../../../lib/plugin/announce.ts";
import { variablesIn } from "../../../../lib/plugin/env-template.ts";
import type { Plugin } from "../../../../lib/plugin/plugin.ts";
import type { ToolDeclaration } from "../../../../lib/plugin/tool-declaration.ts";
import { announcedName } from "../../../../lib/toolschema/names.ts";
import type { Executor } from "../../executor/executor.ts";
import { meets } from "../../executor/sandbox/isolation.ts";
import type { Announcement, ProvidedTools, ToolProvider, UnavailableTool } from "../provider.ts";
import { type Environment, ISOLATION, pluginTool } from "./plugin-tool.ts";
import { type PluginPlace, type ScannedPlugins, scanPlugins } from "./scan.ts";
import { createTurns, type Turns } from "./turns.ts";

/** How often the folder is looked at, in milliseconds: what the owner accepted is used without a restart. */
const REFRESH_MS = 5000;

/** What the tools of plugins run with. */
export interface PluginMachine {
  executor: Pick<Executor, "isolation" | "shortfall" | "resolve">;
  /** The agent's environment, of which plugins get what their env_allow names. */
  env: Environment;
}

/**
 * The tools that the plugins in a folder declare: those that the owner accepted exactly as they are, and whose programs this
 * machine can run as far apart as they have to be. The others are unavailable, each with the reason. Never rejects.
 */
export async function openPluginTools(
  place: PluginPlace,
  machine: PluginMachine,
  { refreshMs = REFRESH_MS }: { refreshMs?: number } = {},
): Promise<ToolProvider> {
  const turns = new Map<string, Turns>();
  const listeners = new Set<() => void>();
  let scanned = await scanPlugins(place, []);
  let provided = providedBy(scanned, machine, turns);
  const refresh = async (): Promise<void> => {
    const next = await scanPlugins(place, scanned.plugins);
    if (stateOf(next) === stateOf(scanned)) return;
    scanned = next;
    provided = providedBy(scanned, machine, turns);
    for (const listener of listeners) listener();
  };
  // Looks again only when the last look has ended, and keeps no process alive.
  let timer: NodeJS.Timeout | undefined;
  const schedule = (): void => {
    timer = setTimeout(() => void refresh().then(() => timer && schedule()), refreshMs).unref();
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
    },
  };
}

/** The same for the same plugins, whenever they were read. */
function stateOf({ plugins, refused }: ScannedPlugins): string {
  return JSON.stringify([plugins.map(({ folder, digest }) => [folder, digest]), refused]);
}

function providedBy(
  { plugins, refused }: ScannedPlugins,
  machine: PluginMachine,
  turns: Map<string, Turns>,
): ProvidedTools {
  const parts = plugins.map((plugin) => announce(plugin, machine, turns));
  return {
    tools: [],
    known: [],
    announced: parts.flatMap(({ announcement }) => announcement ?? []),
    unavailable: [...refused, ...parts.flatMap(({ unavailable }) => unavailable)],
  };
}

function announce(
  plugin: Plugin,
  machine: PluginMachine,
  turns: Map<string, Turns>,
): { announcement: Announcement | undefined; unavailable: UnavailableTool[] } {
  const { manifest } = plugin;
  const offered = new Map<string, ToolDeclaration>();
  const unavailable: UnavailableTool[] = [];
  for (const declaration of manifest.tools) {
    const tool = announcedName(manifest.name, declaration.name);
    const why = whyUnavailable(declaration, machine);
    if (why === undefined) offered.set(tool, declaration);
    else unavailable.push({ tool, program: declaration.command.path, why });
  }
  if (offered.size === 0) return { announcement: undefined, unavailable };
  const definition = announcePlugin(manifest, [...offered.values()]);
  const implement: Announcement["implement"] = (tool) => {
    const declaration = offered.get(tool.spec.name);
    if (declaration === undefined) throw new Error(`${tool.spec.name} is not declared`);
    const own = declaration.concurrencySafe ? undefined : turnsOf(tool.spec.name, turns);
    return pluginTool({ tool, declaration, plugin, env: machine.env, turns: own });
  };
  return { announcement: { definition, implement }, unavailable };
}

/** Kept by name, so that a call of a plugin as it was and one of it as it is now do not run at a time either. */
function turnsOf(name: string, turns: Map<string, Turns>): Turns {
  const own = turns.get(name) ?? createTurns();
  turns.set(name, own);
  return own;
}

function whyUnavailable(
  { command, env: declared, permissionClass }: ToolDeclaration,
  { executor, env }: PluginMachine,
): string | undefined {
  const level = ISOLATION[permissionClass];
  if (!meets(executor.isolation, level))
    return `it runs at the sandbox level ${level}, which this device cannot keep: ${executor.shortfall}`;
  if (command.kind === "name" && executor.resolve(command.path) === undefined)
    return `${command.path} is not on the PATH`;
  const unset = declared.flatMap(([, parts]) => variablesIn(parts)).filter((name) => env[name] === undefined);
  if (unset.length === 0) return undefined;
  return `the agent's environment has no ${[...new Set(unset)].join(", ")}, which its env refers to`;
}
