import { readFile } from "node:fs/promises";
import { expiryMs, openManifest, parseEnvelope, type SignedManifest } from "../../../lib/owner-manifest/envelope.ts";
import { ManifestError } from "../../../lib/owner-manifest/manifest-error.ts";
import { createKeyring, isSameKey, type VerifyKey, verifyKeyFromRaw } from "../../../lib/sign/keys.ts";
import { firstTrust, loadTrust, type OwnerTrust, storeTrust } from "./owner-trust.ts";

/** Where the owner's manifest is, and who may sign it. */
export interface OwnerSettings {
  /** The signed file. Undefined: none is named. */
  file?: string | undefined;
  /** The owner's keys. The first that a device is given are pinned. */
  keys: readonly VerifyKey[];
}

export interface OwnerOptions extends OwnerSettings {
  /** Where the device keeps what it trusts. */
  trustFile: string;
  /** The device's name, which the manifest has to name. */
  device: string;
  /** Milliseconds since 1970. */
  nowMs: number;
}

/**
 * Opens the owner's manifest, and keeps its version before anything acts by it: from then on no older one is accepted, and the
 * device does not start without one. Undefined where the owner has given the device neither keys nor a manifest. Rejects with
 * ManifestError.
 */
export async function openOwnerManifest(options: OwnerOptions): Promise<SignedManifest | undefined> {
  const { file, trustFile } = options;
  const trust = await pinOwnerKeys(options);
  if (trust === undefined) {
    if (file === undefined) return undefined;
    throw new ManifestError(`the owner's manifest ${file} is named, and no key of the owner: set device.manifest_keys`);
  }
  if (file === undefined)
    throw new ManifestError(
      "this device is pinned to its owner's keys, and does not start without the owner's manifest: set device.manifest",
    );
  const signed = await named(file, async () =>
    accepted(openManifest(parseEnvelope(await readFile(file)), ringOf(trust)), trust, options),
  );
  if (signed.digest !== trust.digest) await storeTrust(trustFile, followed(trust, signed));
  return signed;
}

/** Keeps the keys that a device is given first, and resolves with what it trusts; undefined where it has none. Rejects with ManifestError. */
export async function pinOwnerKeys({
  keys,
  trustFile,
}: Pick<OwnerOptions, "keys" | "trustFile">): Promise<OwnerTrust | undefined> {
  const trust = await loadTrust(trustFile);
  if (trust === undefined) {
    if (keys.length === 0) return undefined;
    const first = firstTrust(keys);
    await storeTrust(trustFile, first);
    return first;
  }
  const known = [...trust.pins, ...trust.keys];
  const other = keys.find((key) => !known.some((one) => isSameKey(one, key)));
  if (other === undefined) return trust;
  throw new ManifestError(
    `the owner's key ${other.keyId} is not one that this device is pinned to (${known.map(({ keyId }) => keyId).join(", ")}): ` +
      `an edition with next_keys, signed by one of these, hands over; where they are lost, remove ${trustFile}`,
  );
}

/** The manifest, where nothing speaks against it. Throws ManifestError. */
function accepted(signed: SignedManifest, trust: OwnerTrust, { device, nowMs }: OwnerOptions): SignedManifest {
  const { manifest, digest, keyId } = signed;
  if (!manifest.devices.includes(device))
    throw new ManifestError(`devices: it is for ${manifest.devices.join(", ")}, and this device is ${device}`);
  if (manifest.version < trust.version)
    throw new ManifestError(
      `version: ${manifest.version} is older than ${trust.version}, which this device has accepted`,
    );
  if (manifest.version === trust.version && digest !== trust.digest)
    throw new ManifestError(`version: ${trust.version} was accepted with another text; an edition needs a higher one`);
  if (manifest.version > trust.version && !trust.keys.some((key) => key.keyId === keyId))
    throw new ManifestError(`the key ${keyId} that signed it was replaced by version ${trust.version}`);
  if (nowMs >= expiryMs(manifest))
    throw new ManifestError(`expire_time: it has expired on ${new Date(expiryMs(manifest)).toISOString()}`);
  return signed;
}

function followed(trust: OwnerTrust, { manifest, digest }: SignedManifest): OwnerTrust {
  const next = manifest.nextKeys.map((raw) => verifyKeyFromRaw(raw));
  return {
    pins: trust.pins,
    signers: trust.keys,
    keys: next.length > 0 ? next : trust.keys,
    version: manifest.version,
    digest,
  };
}

function ringOf({ signers, keys }: OwnerTrust) {
  const all = [...signers, ...keys];
  return createKeyring(all.filter((key, at) => all.findIndex((one) => isSameKey(one, key)) === at));
}

async function named(file: string, open: () => Promise<SignedManifest>): Promise<SignedManifest> {
  try {
    return await open();
  } catch (cause: unknown) {
    const why = cause instanceof Error ? cause.message : String(cause);
    throw new ManifestError(`the owner's manifest ${file} is refused: ${why}`, { cause });
  }
}
