import { Mode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { isInMode } from "../../../lib/tool/mode.ts";
import { builtInTools } from "../../../lib/toolschema/catalog-file.ts";
import { nearestName } from "../../../lib/yaml/nearest-name.ts";

/** The tools of a list that an agent gets, and what is said of each that it does not. */
export interface AllowedTools {
  /** Empty: every tool, which only an empty list comes to. */
  names: string[];
  /** By the place in the list. */
  dropped: ReadonlyMap<number, string>;
}

/**
 * The tools that a list and a mode leave. An empty list leaves all of the mode's, and an unstated mode all of the list's. A tool
 * that a device announces ("plugin:tool") is known only where the device is, so its name is kept. Pure.
 */
export function allowedTools(listed: readonly string[], mode: Mode): AllowedTools {
  const isLeft = (name: string) => {
    const tool = builtInTools.get(name);
    return tool === undefined || mode === Mode.UNSPECIFIED || isInMode(mode, tool.scope);
  };
  if (listed.length === 0) {
    const all = mode === Mode.UNSPECIFIED || mode === Mode.ALL;
    return { names: all ? [] : [...builtInTools.keys()].filter(isLeft), dropped: new Map() };
  }
  const dropped = new Map<number, string>();
  for (const [index, name] of listed.entries()) {
    if (!builtInTools.has(name) && !name.includes(":")) dropped.set(index, unknown(name));
    else if (!isLeft(name)) dropped.set(index, `tools_allowed lists ${name}, which is no tool of this mode: dropped`);
  }
  return { names: [...new Set(listed.filter((_, index) => !dropped.has(index)))], dropped };
}

function unknown(name: string): string {
  const nearest = nearestName(name, builtInTools.keys());
  const hint = nearest === undefined ? "" : `; did you mean "${nearest}"?`;
  return `tools_allowed lists unknown tool ${JSON.stringify(name)}: dropped${hint}`;
}
