import type { JsonObject } from "@bufbuild/protobuf";
import type { Tool } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { describeTool } from "./describe.ts";
import { type DeviceName, withDeviceParameter } from "./device-parameter.ts";

/** One tool on one device. */
export interface Offer {
  device: DeviceName;
  tool: Tool;
}

/** A tool as a model is given it, whichever of its devices it runs on. */
export interface MergedTool {
  /** The first device's. */
  tool: Tool;
  /** The devices that offer it, with this schema. At least one. */
  devices: readonly DeviceName[];
  /** The devices that offer one of its name with another schema. */
  leftOut: readonly DeviceName[];
  /** Every call waits for a human, on at least one of them. */
  requiresApproval: boolean;
  description: string;
  /** The schema without the device parameter. The same as `inputSchema` where there is no choice. */
  ownSchema: JsonObject;
  inputSchema: JsonObject;
}

/**
 * Devices may offer a tool of one name with different schemas: a model can be given one of them, so the first device's
 * counts. Pure.
 *
 * @param offers all of one tool's name.
 * @param choose whether the model has to name the device: there is more than one in all.
 */
export function mergeOffers([first, ...others]: readonly [Offer, ...Offer[]], choose: boolean): MergedTool {
  const { tool } = first;
  const same = [first, ...others.filter((offer) => offer.tool.schemaDigest === tool.schemaDigest)];
  const devices = same.map((offer) => offer.device);
  const requiresApproval = same.some((offer) => offer.tool.requiresApproval);
  const ownSchema = tool.inputSchema ?? { type: "object" };
  const capability = tool.capabilities.join(", ");
  return {
    tool,
    devices,
    leftOut: others.filter((offer) => !same.includes(offer)).map((offer) => offer.device),
    requiresApproval,
    description: describeTool({ description: tool.description, capability, requiresApproval }),
    ownSchema,
    inputSchema: choose ? withDeviceParameter(ownSchema, devices) : ownSchema,
  };
}

/** The offers by the tools' names, in the order in which the names come first. */
export function groupOffers(offers: readonly Offer[]): [Offer, ...Offer[]][] {
  const groups = new Map<string, [Offer, ...Offer[]]>();
  for (const offer of offers) {
    const group = groups.get(offer.tool.name);
    if (group === undefined) groups.set(offer.tool.name, [offer]);
    else group.push(offer);
  }
  return [...groups.values()];
}
