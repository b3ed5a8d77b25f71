import type { ToolSpec } from "./spec.ts";

/** What harm the use of a capability can do, as reeve.options.v1.Risk. */
export type Risk = "low" | "medium" | "high";

/** Something that a device can do. The names are those of reeve.capability.v1.Capability. */
export interface CapabilitySpec {
  /** Such as "fs.read". */
  name: string;
  /** A few words for a list. */
  title: string;
  /** What it allows a caller to do. */
  description: string;
  risk: Risk;
  /** No tool that needs it changes anything. */
  readOnly: boolean;
  /** A tool that needs it may destroy what cannot be brought back. */
  destructive: boolean;
  /** The tools that need it, by name. */
  tools: string[];
}

/** What is derived of a capability from the tools that need it. */
export function derivedFrom(
  name: string,
  tools: Iterable<ToolSpec>,
): Pick<CapabilitySpec, "readOnly" | "destructive" | "tools"> {
  const needing = [...tools].filter(({ capabilities }) => capabilities.includes(name));
  return {
    readOnly: needing.every(({ annotations }) => annotations.readOnly),
    destructive: needing.some(({ annotations }) => annotations.destructive),
    tools: needing.map((tool) => tool.name).sort(),
  };
}
