import { loadOffers } from "../../client/offers.ts";
import type { RegistryClient } from "../../client/registry.ts";
import { type McpToolset, mcpToolset } from "../../lib/mcp/toolset.ts";
import { narrowTools } from "../../lib/model-tools/allowed.ts";

/** How often the registry is asked what can be called, in milliseconds. */
const LOOK_MS = 10_000;

/** The tools of now, and their changes. */
export interface FollowedToolset {
  /** The tools that were read last; read now where there are none. */
  current(): Promise<McpToolset>;
  close(): void;
}

/** What an agent may use of what there is. */
export interface ToolsetLimits {
  /** Devices, by id or name. Empty: every device that is online. */
  devices: readonly string[];
  /** Names of tools. Empty: all. Unknown ones are dropped with a warning. */
  toolsAllowed: readonly string[];
}

/** What is notified about a followed toolset. */
export interface ToolsetListener {
  onChanged(): void;
  /** Each warning once. */
  onWarning(warning: string): void;
}

/** Reads the tools when they are first needed and every 10 seconds. A registry that does not answer keeps what it said last. */
export function followToolset(
  client: RegistryClient,
  { devices: named, toolsAllowed }: ToolsetLimits,
  { onChanged, onWarning }: ToolsetListener,
): FollowedToolset {
  let known: McpToolset | undefined;
  const warned = new Set<string>();
  const read = async () => {
    const { devices, offers } = await loadOffers(client, { devices: named });
    const byTool = offers.map((offer) => ({ name: offer.tool.name, offer }));
    const { tools, warnings } = narrowTools(byTool, toolsAllowed);
    for (const warning of warnings.filter((one) => !warned.has(one))) {
      warned.add(warning);
      onWarning(warning);
    }
    const allowed = tools.map(({ offer }) => offer);
    const toolset = mcpToolset(devices, allowed);
    const isChanged = known !== undefined && textOf(known) !== textOf(toolset);
    known = toolset;
    if (isChanged) onChanged();
    return toolset;
  };
  const timer = setInterval(() => void read().catch(() => undefined), LOOK_MS);
  timer.unref();
  return { current: async () => known ?? read(), close: () => clearInterval(timer) };
}

function textOf({ listed }: McpToolset): string {
  return JSON.stringify(listed);
}
