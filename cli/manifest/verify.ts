import { expiryMs, openManifest, parseEnvelope, type SignedManifest } from "../../lib/owner-manifest/envelope.ts";
import { ManifestError } from "../../lib/owner-manifest/manifest-error.ts";
import { createKeyring, type VerifyKey, verifyKeyFromRaw } from "../../lib/sign/keys.ts";
import type { CommandContext } from "../command-context.ts";
import { UsageError } from "../errors/usage-error.ts";
import { ExitCode } from "../exit-codes.ts";
import { visibleLine } from "../print/escape.ts";
import { expiryText } from "../print/expiry.ts";
import { jsonDocument } from "../print/json.ts";
import { manifestFile, readManifestFile } from "./manifest-file.ts";
import { type KeyFlag, ownerPublicKey } from "./owner-key.ts";

export interface VerifyFlags extends KeyFlag {
  publicKey: string[];
  device?: string;
  json?: true;
}

/** `reeve manifest verify`: whether one of the owner's keys signed it, it names the device, and it has not expired. */
export async function verifyManifest(
  named: string | undefined,
  flags: VerifyFlags,
  context: CommandContext,
): Promise<void> {
  const file = manifestFile(named, context);
  const keys = await trustedKeys(flags, context);
  const bytes = await readManifestFile(file);
  const result = verified(bytes, keys, flags.device, context.now());
  if ("problem" in result) context.setExitCode(ExitCode.AUDIT);
  if (flags.json) return void context.stdout.write(jsonDocument({ file, ...resultJson(result) }));
  if ("problem" in result)
    return void context.stdout.write(`${visibleLine(file)}: does not verify: ${visibleLine(result.problem)}\n`);
  const { manifest, keyId } = result;
  context.stdout.write(
    `${visibleLine(file)}: version ${manifest.version} for ${visibleLine(manifest.devices.join(", "))}, signed by ${keyId}, ` +
      `${expiryText(expiryMs(manifest), context.now())}\n`,
  );
}

type Verified = SignedManifest | { problem: string };

/** What speaks against a manifest, or what it is. */
export function verified(
  bytes: Uint8Array,
  keys: readonly VerifyKey[],
  device: string | undefined,
  nowMs: number,
): Verified {
  try {
    const signed = openManifest(parseEnvelope(bytes), createKeyring(keys));
    const { manifest } = signed;
    if (device !== undefined && !manifest.devices.includes(device))
      return { problem: `devices: it is for ${manifest.devices.join(", ")}, not for ${device}` };
    if (nowMs >= expiryMs(manifest)) return { problem: `expire_time: ${expiryText(expiryMs(manifest), nowMs)}` };
    return signed;
  } catch (error: unknown) {
    if (error instanceof ManifestError) return { problem: error.message };
    throw error;
  }
}

function resultJson(result: Verified) {
  if ("problem" in result) return { ok: false, problem: result.problem };
  const { manifest, keyId, digest } = result;
  const expireTime = new Date(expiryMs(manifest)).toISOString();
  return { ok: true, version: Number(manifest.version), devices: [...manifest.devices], keyId, digest, expireTime };
}

/** The keys that are named, else those that this machine's device is given, else the owner's own. Throws a UsageError. */
export async function trustedKeys(
  flags: Pick<VerifyFlags, "publicKey" | "key">,
  context: CommandContext,
): Promise<VerifyKey[]> {
  const set = context.env.REEVE_DEVICE_MANIFEST_KEYS?.split(",").filter((text) => text !== "") ?? [];
  const texts = flags.publicKey.length > 0 ? flags.publicKey : set;
  if (texts.length > 0) return texts.map(keyFrom);
  const own = await ownerPublicKey(flags, context);
  if (own !== undefined) return [own];
  throw new UsageError("no key of the owner is known here", [
    "name one with --public-key, as `reeve manifest key` prints it",
  ]);
}

function keyFrom(text: string): VerifyKey {
  try {
    return verifyKeyFromRaw(Buffer.from(text, "base64"));
  } catch (cause: unknown) {
    throw new UsageError(`"${text}" is no public key as \`reeve manifest key\` prints it`, [], { cause });
  }
}
