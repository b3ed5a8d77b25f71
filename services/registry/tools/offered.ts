import type { DescMessage } from "@bufbuild/protobuf";
import { Mode } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import type { Manifest } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import type { CatalogueTool } from "../../../lib/toolschema/catalogue-tool.ts";

/** A tool of the catalogue with the descriptors of its messages. */
export interface BuiltInTool {
  entry: CatalogueTool;
  input: DescMessage;
  output: DescMessage;
}

/** A tool as one device offers it. */
export interface OfferedTool extends BuiltInTool {
  /** Every call waits for a human: the device's mode says so. */
  requiresApproval: boolean;
}

/** What `offeredTools` found. */
export interface Offer {
  tools: ReadonlyMap<string, OfferedTool>;
  /** Names in the allow list that no tool has: worth a warning. */
  unknown: string[];
}

/**
 * The tools that callers can use on a device: those of the catalogue that its manifest grants and the machine can do,
 * cut down to the allow list where there is one. A tool needs a human on every call when it changes the machine for others or when the
 * device is in sudo mode.
 *
 * @param allowed names of tools; empty keeps everything.
 */
export function offeredTools(
  manifest: Pick<Manifest, "capabilities" | "mode" | "unavailable">,
  catalogue: ReadonlyMap<string, BuiltInTool>,
  allowed: readonly string[],
): Offer {
  const granted = new Set(manifest.capabilities);
  const unavailable = new Set(manifest.unavailable.map(({ tool }) => tool));
  const wanted = new Set(allowed);
  const tools = new Map<string, OfferedTool>();
  for (const [name, tool] of catalogue) {
    if (!granted.has(tool.entry.capability) || unavailable.has(name)) continue;
    if (wanted.size > 0 && !wanted.has(name)) continue;
    const requiresApproval = manifest.mode === Mode.SUDO || tool.entry.scope === "sudo";
    tools.set(name, { ...tool, requiresApproval });
  }
  return { tools, unknown: allowed.filter((name) => !catalogue.has(name)) };
}
