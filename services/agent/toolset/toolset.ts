import type { JsonObject } from "@bufbuild/protobuf";
import { loadOffers } from "../../../client/offers.ts";
import type { RegistryClient } from "../../../client/registry.ts";
import { narrowTools } from "../../../lib/model-tools/allowed.ts";
import type { DeviceName } from "../../../lib/model-tools/device-parameter.ts";
import { groupOffers, mergeOffers, type Offer } from "../../../lib/model-tools/merge-offers.ts";

/** A tool as a model sees it, but for a provider's limits on names and schemas. */
export interface ToolDefinition {
  /** The tool's own name, such as "fs.read". */
  name: string;
  /** What it does, with the marker of `describeTool`. */
  description: string;
  /** JSON Schema 2020-12 of the input. */
  inputSchema: JsonObject;
  /** The capability it needs, such as "fs.read". */
  capability: string;
  /** Every call waits for a human. */
  requiresApproval: boolean;
}

/** A tool of a toolset. */
export interface ToolsetTool extends ToolDefinition {
  /** The schema without the device parameter. The same as `inputSchema` where there is one device. */
  ownSchema: JsonObject;
  /** The devices that offer it, with this schema. At least one. */
  devices: readonly DeviceName[];
}

/**
 * What a model may use during a run: plain JSON, read once and not looked up again, so that a run that goes on for days
 * keeps the tools it started with.
 */
export interface Toolset {
  devices: readonly DeviceName[];
  tools: readonly ToolsetTool[];
  /** Worth showing to the person who configured it. */
  warnings: readonly string[];
}

/** What to put into a toolset. */
export interface ToolsetOptions {
  /** Devices, by id or name. Default: every device that is online. */
  devices?: readonly string[];
  /** Names of tools. Default and empty: all. Unknown ones are dropped with a warning. */
  toolsAllowed?: readonly string[];
  signal?: AbortSignal;
}

/**
 * Reads devices and tools from the registry. Where there is more than one device, each tool gets a required parameter
 * that names the device. Throws what the registry throws: UNKNOWN_DEVICE for a device that does not exist.
 */
export async function loadToolset(client: RegistryClient, options: ToolsetOptions = {}): Promise<Toolset> {
  const { devices, offers } = await loadOffers(client, options);
  return toolsetOf(devices, offers, options.toolsAllowed ?? []);
}

/**
 * The toolset of what devices offer. Devices may offer a tool of one name with different schemas: the model can be given
 * one of them, so the first device's counts and the others are left out with a warning.
 */
export function toolsetOf(
  devices: readonly DeviceName[],
  offers: readonly Offer[],
  toolsAllowed: readonly string[],
): Toolset {
  const warnings: string[] = [];
  const all = groupOffers(offers).map((same) => toolOf(same, devices.length > 1, warnings));
  const { tools, warnings: unknown } = narrowTools(all, toolsAllowed);
  warnings.push(...unknown);
  if (devices.length === 0) warnings.push("no device is online: there are no tools");
  else if (tools.length === 0) warnings.push("no tool is left: the model can only talk");
  return { devices, tools, warnings };
}

function toolOf(offers: readonly [Offer, ...Offer[]], choose: boolean, warnings: string[]): ToolsetTool {
  const { tool, devices, leftOut, ...merged } = mergeOffers(offers, choose);
  for (const device of leftOut) {
    warnings.push(`${tool.name} on ${device.name} differs from the one on ${devices[0]?.name}: left out there`);
  }
  return { name: tool.name, capability: tool.capabilities.join(", "), ...merged, devices };
}
