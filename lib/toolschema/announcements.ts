import type { AnnouncedService } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { type Announced, type AnnouncedTool, describeAnnounced } from "./announced.ts";

/** The most services that one device can announce. */
const MAX_SERVICES = 32;
/** The most bytes of all their descriptor sets: a manifest has to fit into one message. */
const MAX_TOTAL_BYTES = 2 * 1024 * 1024;
/** The most bytes of all their schemas, as JSON: so must a list of tools. */
const MAX_SCHEMA_BYTES = 1024 * 1024;

/** All that a device announces. */
export interface Announcements {
  /** The services that were taken. */
  services: AnnouncedService[];
  tools: AnnouncedTool[];
  /** Annotated RPCs that are no tools, by the name that they would have. */
  unavailable: { tool: string; why: string }[];
  /** What keeps whole services out, by the name that the owner gave them. */
  refused: { name: string; why: string }[];
}

/** Describes one service; throws an Error that says what is wrong with it. */
export type DescribeAnnounced = (service: AnnouncedService) => Announced;

/**
 * Reads what a device announces. One bad service leaves the others alone. Used by the device for its own and by the
 * registry for what a device says, so that what one announces the other takes. Pure.
 *
 * @param describe a memory of `describeAnnounced`, where services come again. Default: itself.
 */
export function readAnnouncements(
  announced: readonly AnnouncedService[],
  describe: DescribeAnnounced = describeAnnounced,
): Announcements {
  const result: Announcements = { services: [], tools: [], unavailable: [], refused: [] };
  const names = new Set<string>();
  let bytes = 0;
  let schemaBytes = 0;
  for (const [at, service] of announced.entries()) {
    const { name, descriptorSet } = service;
    bytes += descriptorSet.length;
    try {
      if (at >= MAX_SERVICES) throw new Error(`more than ${MAX_SERVICES} services`);
      if (bytes > MAX_TOTAL_BYTES) throw new Error(`more than ${MAX_TOTAL_BYTES} bytes of descriptors in all`);
      const { tools, unavailable } = describe(service);
      schemaBytes += JSON.stringify(tools.map(({ tool }) => [tool.inputSchema, tool.outputSchema])).length;
      if (schemaBytes > MAX_SCHEMA_BYTES) throw new Error(`more than ${MAX_SCHEMA_BYTES} bytes of schemas in all`);
      const repeated = tools.filter(({ tool }) => names.has(tool.name));
      result.services.push(service);
      result.tools.push(...tools.filter((one) => !repeated.includes(one)));
      result.unavailable.push(...unavailable);
      result.unavailable.push(
        ...repeated.map(({ tool }) => ({ tool: tool.name, why: "another service has this name" })),
      );
      for (const { tool } of tools) names.add(tool.name);
    } catch (error: unknown) {
      result.refused.push({ name, why: error instanceof Error ? error.message : String(error) });
    }
  }
  return result;
}
