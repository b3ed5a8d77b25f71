import { fromBinary } from "@bufbuild/protobuf";
import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { type Manifest, ManifestSchema } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { deviceIdOf } from "../../../lib/identity/device-id.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { verifyEnvelope } from "../../../lib/sign/dsse.ts";
import { createKeyring, verifyKeyFromRaw } from "../../../lib/sign/keys.ts";
import { MANIFEST_TYPE } from "../../../lib/sign/payload-types.ts";
import { isDeviceName } from "./device-list.ts";
import { MAX_MANIFEST_BYTES, manifestOverLimit } from "./manifest-limits.ts";

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
