import type { Toolset } from "../toolset/toolset.ts";

/** A toolset with these tools, of no device. */
export function devicelessToolset(names: readonly string[]): Toolset {
  const tools = names.map((name) => ({
    name,
    description: `Does ${name}. [device_mesh: ${name}]`,
    capability: name,
    requiresApproval: false,
    inputSchema: { type: "object" },
    ownSchema: { type: "object" },
    devices: [],
  }));
  return { devices: [], tools, warnings: [] };
}
