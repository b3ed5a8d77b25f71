import { Mode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import type { Manifest } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import type { Tool } from "../../../lib/tool/codec.ts";
import type { RefusedService } from "../../../lib/toolschema/announcements.ts";
import { announcedTools } from "./announced.ts";

/** A tool as one device offers it. */
export interface OfferedTool extends Tool {
  /** Every call waits for a human: the device's mode says so. */
  requiresApproval: boolean;
}

/** What `offeredTools` found. */
export interface Offer {
  tools: ReadonlyMap<string, OfferedTool>;
  /** Names in the allow list that no tool has: worth a warning. */
  unknown: string[];
  /** Services that the device announces and that are not taken, and why: worth a warning. */
  refused: readonly RefusedService[];
  /** RPCs of announced services that are no tools, and why. */
  unavailable: readonly { tool: string; why: string }[];
}

/**
 * The tools that callers can use on a device: those of the catalog and those that it announces, as far as its manifest
 * grants them and the machine can do them, cut down to the allow list where there is one. A tool needs a human on every
 * call when it changes the machine for others or when the device is in sudo mode.
 *
 * @param allowed names of tools; empty keeps everything.
 */
export function offeredTools(
  manifest: Pick<Manifest, "capabilities" | "mode" | "unavailable" | "announced">,
  catalog: ReadonlyMap<string, Tool>,
  allowed: readonly string[],
): Offer {
  const granted = new Set(manifest.capabilities);
  const unavailable = new Set(manifest.unavailable.map(({ tool }) => tool));
  const wanted = new Set(allowed);
  const announced = announcedTools(manifest.announced);
  const defined = new Map([...announced.tools, ...catalog]);
  const tools = new Map<string, OfferedTool>();
  for (const [name, tool] of defined) {
    if (!tool.spec.capabilities.every((one) => granted.has(one)) || unavailable.has(name)) continue;
    if (wanted.size > 0 && !wanted.has(name)) continue;
    const requiresApproval = manifest.mode === Mode.SUDO || tool.spec.scope === "sudo";
    tools.set(name, { ...tool, requiresApproval });
  }
  return {
    tools,
    unknown: allowed.filter((name) => !defined.has(name)),
    refused: announced.refused,
    unavailable: announced.unavailable,
  };
}
