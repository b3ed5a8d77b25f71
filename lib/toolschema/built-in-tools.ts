import type { Tool } from "../tool/codec.ts";
import { descriptorCodec } from "../tool/descriptor-codec.ts";
import { BUILT_IN_SERVICES, toolMethods } from "./built-in.ts";
import { loadCatalog } from "./catalog-file.ts";

/** The built-in tools by name: the generated catalog joined with the descriptors that read their inputs. */
export function builtInTools(): ReadonlyMap<string, Tool> {
  const methods = toolMethods(BUILT_IN_SERVICES);
  const tools = new Map<string, Tool>();
  for (const spec of loadCatalog().tools) {
    const method = methods.get(spec.name);
    if (method === undefined) throw new Error(`${spec.name} is in the catalog, but no service in gen/ts defines it`);
    tools.set(spec.name, { spec, codec: descriptorCodec(method.input) });
  }
  return tools;
}
