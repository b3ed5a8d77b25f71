import { fromBinary } from "@bufbuild/protobuf";
import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { type Manifest, ManifestSchema } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { deviceIdOf } from "../../../lib/identity/device-id.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { verifyEnvelope } from "../../../lib/sign/dsse.ts";
import { createKeyring, verifyKeyFromRaw } from "../../../lib/sign/keys.ts";
import { MANIFEST_TYPE } from "../../../lib/sign/payload-types.ts";

/** The most bytes of a manifest: the largest set of announced services, and room for everything else. */
const MAX_MANIFEST_BYTES = 3 * 1024 * 1024;

/** The most entries of each list of a manifest. What is announced as a service has limits of its own. */
const MOST = {
  labels: 256,
  capabilities: 4096,
  readRoots: 1024,
  writeRoots: 1024,
  hosts: 1024,
  unavailable: 4096,
} as const;

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
  const { name, deviceId, platform, agentVersion, capabilities, readRoots, writeRoots, hosts } = manifest;
  const pairs = [
    ...manifest.labels.flatMap(({ key, value }) => [key, value]),
    ...manifest.unavailable.flatMap(({ tool, why }) => [tool, why]),
  ];
  const { sandboxShortfall, owner } = manifest;
  const more = [sandboxShortfall, owner?.digest ?? "", owner?.keyId ?? ""];
  return [
    ...more,
    name,
    deviceId,
    platform,
    agentVersion,
    ...capabilities,
    ...readRoots,
    ...writeRoots,
    ...hosts,
    ...pairs,
  ];
}

/** What became of a manifest that a device showed. */
export type PinResult = { ok: true; manifest: Manifest; digest: string } | { ok: false; problem: string };

/**
 * Checks a manifest that a device shows about itself: signed by the key it names, the key behind its id, the name
 * that was expected, the same key as before, and within the limits of a manifest.
 *
 * @param name the name it must have; undefined where it may choose.
 * @param pinned the key that this name showed first; undefined the first time.
 */
export function checkManifest(
  envelope: SignedEnvelope | undefined,
  name: string | undefined,
  pinned: Uint8Array | undefined,
): PinResult {
  if (envelope === undefined) return { ok: false, problem: "the device sent no manifest" };
  if (envelope.payload.length > MAX_MANIFEST_BYTES)
    return { ok: false, problem: `its manifest is larger than ${MAX_MANIFEST_BYTES} bytes` };
  const claimed = decode(envelope.payload);
  if (claimed === undefined || claimed.publicKey.length !== 32) return { ok: false, problem: "no manifest in it" };
  const key = verifyKeyFromRaw(claimed.publicKey);
  const verified = verifyEnvelope(envelope, createKeyring([key]), MANIFEST_TYPE);
  if (!verified.ok) return { ok: false, problem: `the manifest's signature: ${verified.kind}` };
  if (claimed.deviceId !== deviceIdOf(key)) {
    return { ok: false, problem: "the device's id is not that of its key" };
  }
  if (claimed.name !== (name ?? claimed.name)) {
    return { ok: false, problem: `it calls itself "${claimed.name}", not "${name}"` };
  }
  if (name === undefined && !isDeviceName(claimed.name))
    return { ok: false, problem: "its name is no name of a device" };
  if (pinned !== undefined && !Buffer.from(pinned).equals(claimed.publicKey)) {
    return { ok: false, problem: "its key is not the one it showed first" };
  }
  const problem = manifestOverLimit(claimed);
  if (problem !== undefined) return { ok: false, problem };
  return { ok: true, manifest: claimed, digest: sha256Hex(envelope.payload) };
}

function decode(payload: Uint8Array): Manifest | undefined {
  try {
    return fromBinary(ManifestSchema, payload);
  } catch {
    return undefined;
  }
}

/** The labels that a manifest states. */
export function labelsOf(manifest: Manifest): Record<string, string> {
  return Object.fromEntries(manifest.labels.map(({ key, value }) => [key, value]));
}

/** Whether a text is the name of a device: letters, digits, "-" and "_", at most 64, and not of the form of an id. */
export function isDeviceName(text: string): boolean {
  return /^[A-Za-z0-9][A-Za-z0-9_-]{0,63}$/.test(text) && !isIdLike(text);
}

/** Whether a text has the form of the id of a device or an enrollment, which a name must not have: callers may say either. */
export function isIdLike(text: string): boolean {
  return /^(dev-[0-9a-f]{16}|enr-[0-9a-f]{32})$/.test(text);
}
