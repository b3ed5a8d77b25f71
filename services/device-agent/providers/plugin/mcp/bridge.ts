import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { expandEnv } from "../../../../../lib/plugin/env-template.ts";
import { type Found, type FoundPlugin, foundText, readFound } from "../../../../../lib/plugin/found-tools.ts";
import type { Plugin } from "../../../../../lib/plugin/plugin.ts";
import type { ServerDeclaration } from "../../../../../lib/plugin/server-declaration.ts";
import { readServerTools, type ServerTool } from "../../../../../lib/plugin/server-tools.ts";
import type { Codec } from "../../../../../lib/tool/codec.ts";
import type { AnnouncedTool } from "../../../../../lib/toolschema/announced-tool.ts";
import { replaceFile } from "../../../replace-file.ts";
import { throwIfAborted } from "../../../tools/outcome.ts";
import { type DeviceTool, deviceTool } from "../../../tools/tool.ts";
import { isolationOf, programSpec, requireUnchanged } from "../program.ts";
import type { PluginMachine } from "../provider.ts";
import { createTurns, type Turns } from "../turns.ts";
import type { ServerPlace } from "./connect.ts";
import { createMcpServer, type McpServer } from "./server.ts";

/** The MCP servers of a device's plugins. */
export interface Bridge extends Disposable {
  /** Takes on the servers of these plugins, each with whether it can run here, and ends those of others. */
  use(plugins: readonly Plugin[], whyNot: (server: ServerDeclaration) => string | undefined): void;
  /** What a plugin's servers listed, now or when they were last run. */
  found(plugin: Plugin): FoundPlugin["servers"];
  /** Why a server that listed nothing yet has not, or undefined. */
  problem(plugin: Plugin, server: ServerDeclaration): string | undefined;
  /** The tool that calls a server's. */
  implement(plugin: Plugin, tool: ServerTool, announced: AnnouncedTool): DeviceTool;
}

/** What a bridge is made from. */
export interface BridgeOptions {
  machine: PluginMachine;
  /** Where what was found is kept, so that nothing has to run before it is called. */
  foundFile: string;
  /** Something that it says is another thing now. */
  onChange(): void;
}

/** A server in use. */
interface Used {
  server: McpServer;
  turns: Turns | undefined;
  plugin: Plugin;
  name: string;
}

/** Opens it with what was found before. Rejects with an Error where that cannot be read. */
export async function openBridge({ machine, foundFile, onChange }: BridgeOptions): Promise<Bridge> {
  let found: Found = await readFound(foundFile);
  const used = new Map<string, Used>();
  let writes = Promise.resolve();

  const keep = ({ plugin, name, server }: Used): void => {
    const listed = server.listed();
    const before = serversOf(plugin, found);
    if (listed === undefined || before.get(name) === listed) {
      onChange();
      return;
    }
    const servers = new Map(before).set(name, listed);
    found = new Map(found).set(plugin.manifest.name, { digest: plugin.digest, servers });
    const text = foundText(found);
    // Before anything is reported: the owner is asked to accept what is kept. What cannot be kept is found again after the next start.
    writes = writes
      .then(() => replaceFile(foundFile, text))
      .catch(() => undefined)
      .then(onChange);
  };
  const start = (plugin: Plugin, declaration: ServerDeclaration): Used => {
    const one: Used = {
      plugin,
      name: declaration.name,
      turns: declaration.concurrencySafe ? undefined : createTurns(),
      server: createMcpServer({
        service: `${plugin.manifest.name}/${declaration.name}`,
        open: () => placeOf(plugin, declaration, machine),
        isListed: (tool, listed) =>
          readServerTools(declaration, listed).tools.some(({ digest }) => digest === tool.digest),
        onChange: () => keep(one),
      }),
    };
    return one;
  };

  return {
    use(plugins, whyNot) {
      const wanted = new Set<string>();
      for (const plugin of plugins)
        for (const declaration of plugin.manifest.servers) {
          const key = keyOf(plugin, declaration);
          if (whyNot(declaration) !== undefined) continue;
          wanted.add(key);
          const one = used.get(key) ?? start(plugin, declaration);
          used.set(key, one);
          if (!serversOf(plugin, found).has(declaration.name)) void one.server.discover();
        }
      for (const [key, { server }] of used) {
        if (wanted.has(key)) continue;
        server[Symbol.dispose]();
        used.delete(key);
      }
    },
    found: (plugin) => serversOf(plugin, found),
    problem: (plugin, declaration) => used.get(keyOf(plugin, declaration))?.server.problem(),
    implement(plugin, tool, { spec, codec }) {
      const run = deviceTool(spec, codec as Codec<JsonObject>, async (input, context) => {
        const one = used.get(keyOf(plugin, tool.server));
        const done = await one?.turns?.take(context.signal);
        try {
          throwIfAborted(context);
          await requireUnchanged(spec.name, plugin);
          if (one === undefined) throw new Error(`${spec.name} has no server`);
          return await one.server.call(tool, input, context);
        } finally {
          done?.();
        }
      });
      return { ...run, elsewhere: isolationOf(tool.server) };
    },
    [Symbol.dispose]() {
      for (const { server } of used.values()) server[Symbol.dispose]();
      used.clear();
    },
  };
}

function serversOf({ manifest, digest }: Plugin, found: Found): FoundPlugin["servers"] {
  const before = found.get(manifest.name);
  return before?.digest === digest ? before.servers : new Map();
}

function keyOf({ folder, digest }: Plugin, { name }: ServerDeclaration): string {
  return JSON.stringify([folder, digest, name]);
}

/** Where a server is: what runs, or a program that is started now. */
async function placeOf(
  plugin: Plugin,
  { place, name }: ServerDeclaration,
  { executor, env }: PluginMachine,
): Promise<ServerPlace> {
  if (place.kind === "address")
    return {
      url: place.url,
      headers: Object.fromEntries(place.headers.map(([header, parts]) => [header, expandEnv(parts, env)])),
    };
  await requireUnchanged(join(plugin.manifest.name, name), plugin);
  return { program: await executor.open(programSpec(plugin, place, env)) };
}
