import type { Manifest } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";

/** The most bytes of a manifest: the largest set of announced services, and room for everything else. */
export const MAX_MANIFEST_BYTES = 3 * 1024 * 1024;

/** The most entries of each list of a manifest. What is announced as a service has limits of its own. */
const MOST = { labels: 256, capabilities: 4096, readRoots: 1024, writeRoots: 1024, unavailable: 4096 } as const;

/** The most characters of each text of a manifest. */
const MAX_TEXT = 4096;

/**
 * What of a manifest is over its limits; undefined where nothing is. A manifest is kept in memory and in the database for as
 * long as its device is known, and is shown to callers, so that no device may fill either. Pure.
 */
export function manifestOverLimit(manifest: Manifest): string | undefined {
  for (const [list, most] of Object.entries(MOST)) {
    const { length } = manifest[list as keyof typeof MOST];
    if (length > most) return `its manifest has ${length} ${list}; at most ${most} are taken`;
  }
  if (texts(manifest).some((text) => text.length > MAX_TEXT))
    return `its manifest has a text of more than ${MAX_TEXT} characters`;
  return undefined;
}

function texts(manifest: Manifest): string[] {
  const { name, deviceId, platform, agentVersion, capabilities, readRoots, writeRoots } = manifest;
  const pairs = [
    ...manifest.labels.flatMap(({ key, value }) => [key, value]),
    ...manifest.unavailable.flatMap(({ tool, why }) => [tool, why]),
  ];
  return [name, deviceId, platform, agentVersion, ...capabilities, ...readRoots, ...writeRoots, ...pairs];
}
