import { toBinary } from "@bufbuild/protobuf";
import { type AnnouncedTools, AnnouncedToolsSchema } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import type { Tool } from "../../../lib/tool/codec.ts";
import { type Announced, describeAnnounced } from "../../../lib/toolschema/announced.ts";
import {
  type Announcements,
  type DescribeAnnounced,
  readAnnouncements,
} from "../../../lib/toolschema/announcements.ts";

/** The tools that a device announces, by name, and what is not taken of what it says. */
export interface DeviceAnnouncements extends Pick<Announcements, "refused" | "unavailable"> {
  tools: ReadonlyMap<string, Tool>;
}

/** What became of a service that was announced. */
type Described = { kind: "taken"; announced: Announced } | { kind: "refused"; error: unknown };

/** How many services are remembered, and how many that were refused: they are small, and are announced again at each link. */
const KEPT = { taken: 256, refused: 1024 } as const;

/** Used by all devices: many of them say the same. */
const describeOnce = rememberDescriptions(describeAnnounced);

/** Reads what a device announces. It is the device's word, and not trusted: see `describeAnnounced`. */
export function announcedTools(services: readonly AnnouncedTools[]): DeviceAnnouncements {
  const { tools, refused, unavailable } = readAnnouncements(services, describeOnce);
  return { tools: new Map(tools.map((tool) => [tool.spec.name, tool])), refused, unavailable };
}

/**
 * Describes a service once for what it announces: a device says the same each time it links. What was refused is remembered
 * too, apart from what was taken, so that it drives nothing out that is in use.
 */
export function rememberDescriptions(describe: DescribeAnnounced): DescribeAnnounced {
  const known = { taken: new Map<string, Described>(), refused: new Map<string, Described>() };
  return (service) => {
    const key = sha256Hex(toBinary(AnnouncedToolsSchema, service));
    const described = known.taken.get(key) ?? known.refused.get(key) ?? outcomeOf(describe, service);
    const kept = known[described.kind];
    // Set again: the one that was not used for longest is the first to go.
    kept.delete(key);
    kept.set(key, described);
    const [oldest] = kept.keys();
    if (kept.size > KEPT[described.kind] && oldest !== undefined) kept.delete(oldest);
    if (described.kind === "refused") throw described.error;
    return described.announced;
  };
}

function outcomeOf(describe: DescribeAnnounced, service: AnnouncedTools): Described {
  try {
    return { kind: "taken", announced: describe(service) };
  } catch (error: unknown) {
    return { kind: "refused", error };
  }
}
