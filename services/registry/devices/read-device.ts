import type { Manifest } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import type { Logger } from "../../../lib/log/log.ts";
import { createBatchVerifier } from "../../../lib/sign/batch-verifier.ts";
import { createKeyring, verifyKeyFromRaw } from "../../../lib/sign/keys.ts";
import { RECEIPT_TYPE } from "../../../lib/sign/payload-types.ts";
import type { Tool } from "../../../lib/tool/codec.ts";
import { offeredTools } from "../tools/offered.ts";
import type { KnownDevice, LinkFacts, UnavailableTool } from "./linked-device.ts";

/** What a device's manifest is read with. */
export interface ReadOptions {
  catalog: ReadonlyMap<string, Tool>;
  /** Names of tools that callers may use; empty keeps everything. */
  toolsAllowed: readonly string[];
  logger: Logger;
}

/** How many tools that are not taken a log line names. */
const LOGGED_TOOLS = 10;

/** The device that a checked manifest describes, with what is known of its link. */
export function readDevice(
  { manifest, digest }: { manifest: Manifest; digest: string },
  link: LinkFacts,
  options: ReadOptions,
): KnownDevice {
  const { tools, unknown, refused, unavailable } = offeredTools(manifest, options.catalog, options.toolsAllowed);
  for (const { name, why, limit } of refused) {
    options.logger.warn(
      { service: name, device: manifest.name, why, ...(limit === undefined ? {} : { limit }) },
      "a service that a device announces is not taken",
    );
  }
  if (unavailable.length > 0) {
    const tools = unavailable.slice(0, LOGGED_TOOLS).map(({ tool, why }) => `${tool} (${why})`);
    options.logger.warn(
      { device: manifest.name, count: unavailable.length, tools: tools.join(", ") },
      "tools that a device announces are not taken",
    );
  }
  for (const name of unknown) {
    options.logger.warn(
      { tool: name, device: manifest.name },
      "tools_allowed lists a tool that does not exist; dropped",
    );
  }
  return {
    id: manifest.deviceId,
    name: manifest.name,
    manifest,
    manifestDigest: digest,
    tools,
    labels: labelsOf(manifest),
    unavailable: unavailableOn(manifest, [
      ...unavailable,
      ...refused.map(({ name, why }) => ({ tool: name, why: `the service is not taken: ${why}` })),
    ]),
    receipts: createBatchVerifier({
      keyring: createKeyring([verifyKeyFromRaw(manifest.publicKey)]),
      statementType: RECEIPT_TYPE,
    }),
    ...link,
  };
}

/** What the device says of a tool, or else what was found here. */
function unavailableOn(manifest: Manifest, found: readonly UnavailableTool[]): UnavailableTool[] {
  const stated = new Set(manifest.unavailable.map(({ tool }) => tool));
  return [...manifest.unavailable, ...found.filter(({ tool }) => !stated.has(tool))];
}

/** The labels that a manifest states. */
export function labelsOf(manifest: Manifest): Record<string, string> {
  return Object.fromEntries(manifest.labels.map(({ key, value }) => [key, value]));
}
