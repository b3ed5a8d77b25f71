import { allowsTool, type Principal } from "../../../../lib/auth/principal.ts";
import { type McpToolset, mcpToolset } from "../../../../lib/mcp/toolset.ts";
import type { Directory } from "../../devices/directory.ts";
import type { KnownDevice } from "../../devices/known-device.ts";
import { toTool } from "../list-tools.ts";

/** Whose tools: those that a token allows. */
type Allowed = Pick<Principal, "tools">;

/**
 * The tools of the devices that are online now, as far as a principal's token allows them. Made again only when another device
 * is, or one has shown another manifest; once for each list of a token, and once for all without one.
 */
export function currentToolset(directory: Pick<Directory, "all">): (allowed?: Allowed) => McpToolset {
  let known: { devices: readonly KnownDevice[]; toolset: McpToolset } | undefined;
  let narrowed = new WeakMap<readonly string[], McpToolset>();
  return ({ tools } = {}) => {
    const devices = directory.all().filter(({ online }) => online);
    if (known === undefined || !isSame(known.devices, devices)) {
      known = { devices, toolset: toolsetOf(devices, {}) };
      narrowed = new WeakMap();
    }
    if (tools === undefined) return known.toolset;
    const made = narrowed.get(tools) ?? toolsetOf(devices, { tools });
    narrowed.set(tools, made);
    return made;
  };
}

function toolsetOf(devices: readonly KnownDevice[], allowed: Allowed): McpToolset {
  const names = devices.map(({ id, name }) => ({ id, name }));
  const offers = devices.flatMap(({ id, name, tools }) =>
    [...tools.values()]
      .filter(({ spec }) => allowsTool(allowed, spec.name))
      .map((tool) => ({ device: { id, name }, tool: toTool(tool, id) })),
  );
  return mcpToolset(names, offers);
}

/** A device that shows another manifest is another object. */
function isSame(some: readonly KnownDevice[], others: readonly KnownDevice[]): boolean {
  return some.length === others.length && some.every((device, at) => device === others[at]);
}
