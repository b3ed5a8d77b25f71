import type { AnnouncedService } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { type Announced, describeAnnounced } from "../../../lib/toolschema/announced.ts";
import { readAnnouncements } from "../../../lib/toolschema/announcements.ts";
import type { DefinedTool } from "./offered.ts";

/** The tools that a device announces, by name, and what is not taken of what it says. */
export interface AnnouncedTools {
  tools: ReadonlyMap<string, DefinedTool>;
  refused: readonly { name: string; why: string }[];
}

/** How many descriptions are kept. */
const KEPT = 256;

/** Descriptions by what they were made from: a device says the same each time it links, and many devices say the same. */
const known = new Map<string, Announced>();

/** Reads what a device announces. It is the device's word, and not trusted: see `describeAnnounced`. */
export function announcedTools(services: readonly AnnouncedService[]): AnnouncedTools {
  const { tools, refused } = readAnnouncements(services, describeOnce);
  const defined = tools.map(({ tool, method }): [string, DefinedTool] => [
    tool.name,
    { entry: tool, input: method.input, output: method.output },
  ]);
  return { tools: new Map(defined), refused };
}

function describeOnce(service: AnnouncedService): Announced {
  const key = JSON.stringify([service.name, service.service, sha256Hex(service.descriptorSet)]);
  const found = known.get(key) ?? describeAnnounced(service);
  // Set again: the one that was not used for longest is the first to go.
  known.delete(key);
  known.set(key, found);
  const [oldest] = known.keys();
  if (known.size > KEPT && oldest !== undefined) known.delete(oldest);
  return found;
}
