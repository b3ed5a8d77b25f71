import { readFile } from "node:fs/promises";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { SignedEnvelopeSchema } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { Manifest } from "../../../gen/ts/reeve/device/v1/manifest_pb.ts";
import type { SigningKey } from "../../../lib/sign/keys.ts";
import { replaceFile } from "../replace-file.ts";
import { openManifest, type SealedManifest, sayTheSame, sealManifest } from "./manifest.ts";

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
