import { type McpToolset, mcpToolset } from "../../../../lib/mcp/toolset.ts";
import type { Directory } from "../../devices/directory.ts";
import type { KnownDevice } from "../../devices/known-device.ts";
import { toTool } from "../list-tools.ts";

/** The tools of the devices that are online now. Made again only when another device is, or one has shown another manifest. */
export function currentToolset(directory: Pick<Directory, "all">): () => McpToolset {
  let known: { devices: readonly KnownDevice[]; toolset: McpToolset } | undefined;
  return () => {
    const devices = directory.all().filter(({ online }) => online);
    if (known === undefined || !isSame(known.devices, devices)) known = { devices, toolset: toolsetOf(devices) };
    return known.toolset;
  };
}

function toolsetOf(devices: readonly KnownDevice[]): McpToolset {
  const names = devices.map(({ id, name }) => ({ id, name }));
  const offers = devices.flatMap(({ id, name, tools }) =>
    [...tools.values()].map((tool) => ({ device: { id, name }, tool: toTool(tool, id) })),
  );
  return mcpToolset(names, offers);
}

/** A device that shows another manifest is another object. */
function isSame(some: readonly KnownDevice[], others: readonly KnownDevice[]): boolean {
  return some.length === others.length && some.every((device, at) => device === others[at]);
}
