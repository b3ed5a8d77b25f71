import type { RegistryClient } from "../../client/registry.ts";
import { type McpToolset, mcpToolset } from "../../lib/mcp/toolset.ts";
import { loadOffers } from "../../services/agent/toolbox/toolset.ts";

/** How often the registry is asked what can be called, in milliseconds. */
const LOOK_MS = 10_000;

/** The tools of now, and their changes. */
export interface FollowedToolset {
  /** The tools that were read last; read now where there are none. */
  current(): Promise<McpToolset>;
  close(): void;
}

/** Reads the tools at once and every 10 seconds. A registry that does not answer keeps what it said last. */
export function followToolset(client: RegistryClient, onChanged: () => void): FollowedToolset {
  let known: McpToolset | undefined;
  const read = async () => {
    const { devices, offers } = await loadOffers(client);
    const toolset = mcpToolset(devices, offers);
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
