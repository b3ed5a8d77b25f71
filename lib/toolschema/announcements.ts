import type { AnnouncedTools } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { cleanOutput } from "../sanitize/sanitize.ts";
import { type Announced, describeAnnounced } from "./announced.ts";
import type { AnnouncedTool } from "./announced-tool.ts";
import { createMeters, LIMITS, LimitExceeded, type LimitName } from "./limits.ts";

export interface Announcements {
  /** The services that were taken. */
  services: AnnouncedTools[];
  tools: AnnouncedTool[];
  /** Annotated RPCs that are no tools, by the name that they would have. */
  unavailable: { tool: string; why: string }[];
  /** What keeps whole services out, by the name that the owner gave them. */
  refused: RefusedService[];
}

/** A service of a device that is not taken. */
export interface RefusedService {
  /** The name that the owner gave it. Sanitized. */
  name: string;
  /** Why, for a person. Sanitized. */
  why: string;
  /** The limit that it exceeds; undefined where something else is wrong with it. */
  limit: LimitName | undefined;
}

/** Describes one service; throws an Error that says what is wrong with it. */
export type DescribeAnnounced = (service: AnnouncedTools) => Announced;

/**
 * Reads what a device announces. One bad service leaves the others alone. Used by the device for its own and by the
 * registry for what a device says, so that what one announces the other takes. Pure.
 *
 * @param describe a memory of `describeAnnounced`, where services come again. Default: itself.
 */
export function readAnnouncements(
  announced: readonly AnnouncedTools[],
  describe: DescribeAnnounced = describeAnnounced,
): Announcements {
  const result: Announcements = { services: [], tools: [], unavailable: [], refused: [] };
  const names = new Set<string>();
  const meter = createMeters();
  for (const [at, service] of announced.entries()) {
    if (result.refused.length >= LIMITS.announced_refusals) {
      const { why, ...refused } = refusedService(service.name, new LimitExceeded("announced_refusals"));
      result.refused.push({ ...refused, why: `${why}; it and all ${announced.length - at - 1} after it are not read` });
      break;
    }
    try {
      meter("announced_services").add(1);
      meter("announced_bytes").add(definitionBytes(service));
      const { tools, unavailable, built } = describe(service);
      meter("announced_schema_size").add(built);
      const repeated = tools.filter(({ spec }) => names.has(spec.name));
      result.services.push(service);
      result.tools.push(...tools.filter((one) => !repeated.includes(one)));
      result.unavailable.push(...unavailable);
      result.unavailable.push(
        ...repeated.map(({ spec }) => ({ tool: spec.name, why: "another service has this name" })),
      );
      for (const { spec } of tools) names.add(spec.name);
    } catch (error: unknown) {
      result.refused.push(refusedService(service.name, error));
    }
  }
  return result;
}

/** What measures an announcement, in bytes, before anything of it is read. */
function definitionBytes({ definition }: AnnouncedTools): number {
  if (definition.case === "service") return definition.value.descriptorSet.length;
  const tools = definition.value?.tools ?? [];
  return tools.reduce((sum, one) => sum + one.description.length + one.inputSchema.length + one.outputSchema.length, 0);
}

/** The longest name and reason of a refused service, in characters. */
const MAX_NAME = 64;
const MAX_WHY = 500;

function refusedService(name: string, error: unknown): RefusedService {
  const why = error instanceof Error ? error.message : String(error);
  return {
    name: cleanOutput(name.slice(0, MAX_NAME)).text,
    why: cleanOutput(why.slice(0, MAX_WHY)).text,
    limit: error instanceof LimitExceeded ? error.limit : undefined,
  };
}
