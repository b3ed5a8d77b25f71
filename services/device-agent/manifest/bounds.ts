import { Mode, ModeSchema } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import type { OwnerManifest } from "../../../gen/ts/reeve/device/v1/owner_manifest_pb.ts";
import { ManifestError } from "../../../lib/owner-manifest/manifest-error.ts";
import { isAtOrBelow, realPathOf } from "../../../lib/paths/real-path.ts";

/** What an owner's manifest bounds of a device's settings. */
export interface Boundable {
  mode: Mode;
  readRoots: readonly string[];
  writeRoots: readonly string[];
  hosts?: readonly string[];
}

/** Settings that were not stated, of which the manifest's count. */
export type Unstated = ReadonlySet<keyof Boundable>;

/**
 * The settings as the manifest lets them be: what was not stated is the manifest's, and what was has to lie within it. Nothing
 * is narrowed in silence: throws a ManifestError that names the first setting that asks for more. Folders are compared by
 * where they really are.
 */
export function boundedBy<T extends Boundable>(config: T, manifest: OwnerManifest, unstated: Unstated): T {
  const mode = unstated.has("mode") ? manifest.mode : config.mode;
  if (manifest.mode !== Mode.ALL && mode !== manifest.mode)
    throw new ManifestError(
      `device.mode: it is ${modeName(mode)}, and the owner's manifest allows ${modeName(manifest.mode)}`,
    );
  const { readRoots, writeRoots } = manifest;
  const bounded = (name: "readRoots" | "writeRoots", field: string, within: readonly string[]): readonly string[] => {
    if (unstated.has(name)) return manifest[name];
    // One that does not exist is refused when it is opened.
    const real = within.map((folder) => realPathOf(folder) ?? folder);
    const outside = config[name].find(
      (folder) => !real.some((root) => isAtOrBelow(realPathOf(folder) ?? folder, root)),
    );
    if (outside === undefined) return config[name];
    const granted = within.length === 0 ? "none" : within.join(", ");
    throw new ManifestError(
      `device.${field}: ${outside} is in no folder that the owner's manifest grants (${granted})`,
    );
  };
  return {
    ...config,
    mode,
    readRoots: bounded("readRoots", "read_roots", [...readRoots, ...writeRoots]),
    writeRoots: bounded("writeRoots", "write_roots", writeRoots),
    hosts: unstated.has("hosts") ? manifest.hosts : boundedHosts(config.hosts ?? [], manifest.hosts),
  };
}

/** Hosts that are named as the manifest names them, or below one that it grants with "*.". */
function boundedHosts(hosts: readonly string[], granted: readonly string[]): readonly string[] {
  const isBelow = (host: string, one: string) => one.startsWith("*.") && host.endsWith(one.slice(1));
  const outside = hosts.find((host) => !granted.some((one) => host === one || isBelow(host, one)));
  if (outside === undefined) return hosts;
  throw new ManifestError(
    `device.hosts: the owner's manifest does not grant ${outside} (${granted.length === 0 ? "none" : granted.join(", ")})`,
  );
}

/** Whether a list of a manifest grants a capability. Pure. */
export function grantsCapability(granted: readonly string[], capability: string): boolean {
  return granted.some((one) => one === capability || (one.endsWith("*") && capability.startsWith(one.slice(0, -1))));
}

function modeName(mode: Mode): string {
  const name = ModeSchema.values.find(({ number }) => number === mode)?.localName ?? "";
  return name.toLowerCase();
}
