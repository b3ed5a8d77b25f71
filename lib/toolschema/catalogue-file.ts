import generated from "../../gen/schema/catalogue.json" with { type: "json" };
import type { ToolSpec } from "../tool/spec.ts";
import type { Catalogue } from "./catalogue.ts";

// What the generator wrote: TypeScript infers plain strings where the catalogue has a closed set.
const catalogue = generated as unknown as Catalogue;
const byName = new Map(catalogue.tools.map((tool) => [tool.name, tool]));

/** The built-in tools, as `npm run generate` derived them from the protos. Shared: do not change it. */
export function loadCatalogue(): Catalogue {
  return catalogue;
}

/** A built-in tool by its name, such as "fs.read"; undefined where there is none. */
export function toolByName(name: string): ToolSpec | undefined {
  return byName.get(name);
}
