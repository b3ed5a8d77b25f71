import type { Mode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { isInMode } from "../../../lib/tool/mode.ts";
import type { ToolSpec } from "../../../lib/tool/spec.ts";
import { grantsCapability } from "./bounds.ts";

/** What an offer needs to know of a tool. */
export type OfferableTool = Pick<ToolSpec, "name" | "capabilities" | "scope">;

/** What a device allows. */
export interface Offer<T> {
  /** The tools that may be called, by name. */
  tools: ReadonlyMap<string, T>;
  /** The capabilities of these tools, sorted. */
  capabilities: string[];
  /** Capabilities that the owner listed and no tool has: most likely misspelt. */
  unknown: string[];
}

/** How the owner narrows what the machine can do. */
export interface OfferChoice {
  mode: Mode;
  /** The capabilities that are granted. Default: all that the mode gives. */
  capabilities?: readonly string[] | undefined;
  /** The capabilities that the owner's manifest grants. Default: all. */
  granted?: readonly string[] | undefined;
}

/**
 * The tools that a device offers: those the machine can run, in the mode, with all their capabilities granted. `known` are all
 * tools of this program, so that a capability of a tool that is merely missing here is not taken for a misspelt one.
 */
export function offerTools<T extends { spec: OfferableTool }>(
  available: Iterable<T>,
  known: Iterable<OfferableTool>,
  choice: OfferChoice,
): Offer<T> {
  const allowed = choice.capabilities === undefined ? undefined : new Set(choice.capabilities);
  const tools = new Map<string, T>();
  for (const tool of available) {
    const { spec } = tool;
    if (!isInMode(choice.mode, spec.scope)) continue;
    const isGranted = (one: string) =>
      (allowed?.has(one) ?? true) && (choice.granted === undefined || grantsCapability(choice.granted, one));
    if (spec.capabilities.every(isGranted)) tools.set(spec.name, tool);
  }
  const exist = new Set([...known].flatMap((tool) => tool.capabilities));
  return {
    tools,
    capabilities: [...new Set([...tools.values()].flatMap(({ spec }) => spec.capabilities))].sort(),
    unknown: [...(allowed ?? [])].filter((capability) => !exist.has(capability)).sort(),
  };
}
