import { readFile } from "node:fs/promises";
import { create, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type SignedEnvelope, SignedEnvelopeSchema } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { Mode, OwnerManifestStateSchema, SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { type AnnouncedTools, type Manifest, ManifestSchema } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { deviceIdOf } from "../../../lib/identity/device-id.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { signEnvelope, verifyEnvelope } from "../../../lib/sign/dsse.ts";
import { createKeyring, type SigningKey, type VerifyKey } from "../../../lib/sign/keys.ts";
import { MANIFEST_TYPE } from "../../../lib/sign/payload-types.ts";
import { replaceFile } from "../replace-file.ts";

/** The version of the manifest's form. */
const MANIFEST_VERSION = 1;

/** What goes into a manifest. */
export interface ManifestFacts {
  key: VerifyKey;
  name: string;
  labels: Readonly<Record<string, string>>;
  mode: Mode;
  /** Sorted, without repeats. */
  capabilities: readonly string[];
  /** Absolute. */
  readRoots: readonly string[];
  /** Absolute. */
  writeRoots: readonly string[];
  /** Sorted. */
  hosts: readonly string[];
  sandbox: SandboxLevel;
  /** Why it is not higher. Default empty: nothing is missing. */
  sandboxShortfall?: string;
  /** Such as "linux/x64". */
  platform: string;
  agentVersion: string;
  unavailable: readonly { tool: string; why: string }[];
  /** In one order. */
  announced: readonly AnnouncedTools[];
  /** The owner's manifest that bounds all of this. */
  owner?: MessageInitShape<typeof OwnerManifestStateSchema> | undefined;
  /** When it is made, in milliseconds since 1970. */
  issueMs: number;
}

export interface SealedManifest {
  manifest: Manifest;
  envelope: SignedEnvelope;
  /** SHA-256 of the signed bytes, in hex. Bound into every grant and receipt. */
  digest: string;
}

/** Builds the manifest. Lists are sorted, so that the same facts give the same bytes. */
export function buildManifest(facts: ManifestFacts): Manifest {
  const labels = Object.entries(facts.labels).map(([key, value]) => ({ key, value }));
  return create(ManifestSchema, {
    version: MANIFEST_VERSION,
    deviceId: deviceIdOf(facts.key),
    name: facts.name,
    labels: labels.sort((a, b) => (a.key < b.key ? -1 : 1)),
    mode: facts.mode,
    capabilities: [...facts.capabilities],
    readRoots: [...facts.readRoots],
    writeRoots: [...facts.writeRoots],
    publicKey: facts.key.raw,
    sandbox: facts.sandbox,
    sandboxShortfall: facts.sandboxShortfall ?? "",
    platform: facts.platform,
    agentVersion: facts.agentVersion,
    unavailable: facts.unavailable.map(({ tool, why }) => ({ tool, why })),
    issueTime: timestampFromMs(facts.issueMs),
    announced: [...facts.announced],
    hosts: [...facts.hosts],
    ...(facts.owner === undefined ? {} : { owner: facts.owner }),
  });
}

/** Signs a manifest with the device's key. */
export function sealManifest(key: SigningKey, manifest: Manifest): SealedManifest {
  const payload = toBinary(ManifestSchema, manifest);
  return { manifest, envelope: signEnvelope(key, MANIFEST_TYPE, payload), digest: sha256Hex(payload) };
}

/** Opens an envelope that must hold a manifest signed by this key; undefined for anything else. */
export function openManifest(key: VerifyKey, envelope: SignedEnvelope): SealedManifest | undefined {
  const result = verifyEnvelope(envelope, createKeyring([key]), MANIFEST_TYPE);
  if (!result.ok) return undefined;
  return { manifest: fromBinary(ManifestSchema, result.payload), envelope, digest: sha256Hex(result.payload) };
}

/** True where both say the same, whenever they were made. */
export function sayTheSame(a: Manifest, b: Manifest): boolean {
  return Buffer.compare(undated(a), undated(b)) === 0;
}

function undated(manifest: Manifest): Uint8Array {
  const { issueTime: _, ...rest } = manifest;
  return toBinary(ManifestSchema, create(ManifestSchema, rest));
}

/**
 * The signed manifest that says this: the one in the file where it says the same, else a new one, which replaces it.
 * So a restart alone does not change the digest, and grants that were given before it stay good. A file that cannot be
 * read, or that another key signed, is replaced.
 */
export async function keepManifest(path: string, key: SigningKey, manifest: Manifest): Promise<SealedManifest> {
  const stored = await loadManifest(path, key);
  if (stored !== undefined && sayTheSame(stored.manifest, manifest)) return stored;
  const sealed = sealManifest(key, manifest);
  await replaceFile(path, toBinary(SignedEnvelopeSchema, sealed.envelope));
  return sealed;
}

async function loadManifest(path: string, key: SigningKey): Promise<SealedManifest | undefined> {
  try {
    return openManifest(key, fromBinary(SignedEnvelopeSchema, await readFile(path)));
  } catch {
    return undefined;
  }
}
