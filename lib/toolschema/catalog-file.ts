import generated from "../../gen/schema/catalog.json" with { type: "json" };
import type { CapabilitySpec } from "../tool/capability.ts";
import type { ToolSpec } from "../tool/spec.ts";
import type { Catalog } from "./catalog.ts";

// What the generator wrote: TypeScript infers plain strings where the catalog has a closed set.
const catalog = generated as unknown as Catalog;

/** The built-in capabilities by name, such as "fs.read". */
export const builtInCapabilities: ReadonlyMap<string, CapabilitySpec> = new Map(
  catalog.capabilities.map((one) => [one.name, one]),
);

/** The built-in tools by name, such as "fs.read". */
export const builtInTools: ReadonlyMap<string, ToolSpec> = new Map(catalog.tools.map((tool) => [tool.name, tool]));

/** The built-in tools, as `npm run generate` derived them from the protos. Shared: do not change it. */
export function loadCatalog(): Catalog {
  return catalog;
}

/** A built-in tool by its name, such as "fs.read"; undefined where there is none. */
export function toolByName(name: string): ToolSpec | undefined {
  return builtInTools.get(name);
}
