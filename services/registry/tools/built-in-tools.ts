import { BUILT_IN_SERVICES, toolMethods } from "../../../lib/toolschema/built-in.ts";
import { loadCatalogue } from "../../../lib/toolschema/catalogue-file.ts";
import type { DefinedTool } from "./offered.ts";

/** The built-in tools by name: the generated catalogue joined with the descriptors that check and read their messages. */
export function builtInTools(): ReadonlyMap<string, DefinedTool> {
  const methods = toolMethods(BUILT_IN_SERVICES);
  const tools = new Map<string, DefinedTool>();
  for (const entry of loadCatalogue().tools) {
    const method = methods.get(entry.name);
    if (method === undefined) throw new Error(`${entry.name} is in the catalogue, but no service in gen/ts defines it`);
    tools.set(entry.name, { entry, input: method.input, output: method.output });
  }
  return tools;
}
