import type { JsonObject, JsonValue } from "@bufbuild/protobuf";
import type { Tool } from "../../gen/ts/reeve/tool/v1/tool_pb.ts";
import { type DeviceName, type RoutedInput, takeDevice } from "../model-tools/device-parameter.ts";
import { groupOffers, type MergedTool, mergeOffers, type Offer } from "../model-tools/merge-offers.ts";
import { PROVIDER_NAME, providerName } from "../model-tools/names.ts";
import { type RootObjectSchema, withoutMarks } from "../model-tools/root-schema.ts";
import { OWN_TOOLS } from "./own-tools.ts";

/** A tool as `tools/list` sends it. */
export interface ListedTool {
  name: string;
  description: string;
  inputSchema: RootObjectSchema;
  outputSchema?: RootObjectSchema;
  annotations: { readOnlyHint: boolean; destructiveHint: boolean; idempotentHint: boolean; openWorldHint: boolean };
}

/** What one principal can use, on all its devices. */
export interface McpToolset {
  devices: readonly DeviceName[];
  /** By name, with the face's own last. */
  listed: readonly ListedTool[];
  /** The devices' tools by the name that clients use. */
  byName: ReadonlyMap<string, MergedTool>;
}

/**
 * The tools of what devices offer. A tool whose name for clients is another's already, or too long, is left out: a client
 * could not call it. Pure.
 */
export function mcpToolset(devices: readonly DeviceName[], offers: readonly Offer[]): McpToolset {
  const taken = new Set(OWN_TOOLS.map(({ name }) => name));
  const byName = new Map<string, MergedTool>();
  for (const same of groupOffers(offers.toSorted((a, b) => (a.tool.name < b.tool.name ? -1 : 1)))) {
    const name = providerName(same[0].tool.name);
    if (taken.has(name) || !PROVIDER_NAME.test(name)) continue;
    taken.add(name);
    byName.set(name, mergeOffers(same, devices.length > 1));
  }
  return { devices, listed: [...[...byName].map(([name, tool]) => listedTool(name, tool)), ...OWN_TOOLS], byName };
}

/**
 * The device that a call is for, and its arguments without it.
 * Throws DEVICE_REQUIRED and UNKNOWN_DEVICE, with the devices there are.
 */
export function routeCall({ devices }: McpToolset, tool: MergedTool, input: JsonObject): RoutedInput {
  const [only] = tool.devices;
  if (devices.length === 1 && only !== undefined) return { deviceId: only.id, input };
  return takeDevice(tool.ownSchema, tool.devices, input);
}

function listedTool(name: string, { tool, description, inputSchema }: MergedTool): ListedTool {
  return {
    name,
    description,
    inputSchema: portable(inputSchema),
    ...(hasOutput(tool) && { outputSchema: portable(tool.outputSchema) }),
    annotations: {
      readOnlyHint: tool.annotations?.readOnly ?? false,
      destructiveHint: tool.annotations?.destructive ?? true,
      idempotentHint: tool.annotations?.idempotent ?? false,
      openWorldHint: tool.annotations?.openWorld ?? true,
    },
  };
}

function hasOutput(tool: Tool): tool is Tool & { outputSchema: JsonObject } {
  return tool.outputSchema !== undefined && Object.keys(tool.outputSchema).length > 0;
}

/**
 * The schema as JSON Schema 2020-12 without what is the gate's own, and with a choice of types as alternatives: many clients
 * take one type where the standard allows a list. The protocol wants an object at the root, and takes whatever stands beside it.
 */
function portable(schema: JsonObject): RootObjectSchema {
  return { ...(singleTypes(withoutMarks(schema)) as JsonObject), type: "object" };
}

function singleTypes(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(singleTypes);
  if (typeof value !== "object" || value === null) return value;
  const { type, ...rest } = value;
  const others = Object.fromEntries(Object.entries(rest).map(([key, item]) => [key, singleTypes(item)]));
  if (type === undefined) return others;
  if (!Array.isArray(type)) return { type: singleTypes(type), ...others };
  const alternatives = { anyOf: type.map((one) => ({ type: one })) };
  return "anyOf" in others ? { ...others, allOf: [alternatives] } : { ...others, ...alternatives };
}
