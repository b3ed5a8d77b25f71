import { readFile } from "node:fs/promises";
import { parseStrictJson } from "../../../lib/json/strict-json.ts";
import { type VerifyKey, verifyKeyFromRaw } from "../../../lib/sign/keys.ts";
import { schemaAt } from "../../../lib/tool/json-schema.ts";
import { replaceFile } from "../replace-file.ts";

/** What a device trusts of its owner, and the newest manifest that it has accepted. */
export interface OwnerTrust {
  /** The keys that it was given at first. */
  pins: readonly VerifyKey[];
  /** The keys that may sign the next version. */
  keys: readonly VerifyKey[];
  /** The keys that might sign the accepted version. */
  signers: readonly VerifyKey[];
  /** The accepted version; 0 where there was none yet. */
  version: bigint;
  /** The digest of its text, in hex. */
  digest: string;
}

/** The trust of a device that was given these keys and no manifest. */
export function firstTrust(pins: readonly VerifyKey[]): OwnerTrust {
  return { pins, keys: pins, signers: pins, version: 0n, digest: "" };
}

/** Reads what `storeTrust` wrote; undefined where there is no file. Rejects where it holds anything else. */
export async function loadTrust(path: string): Promise<OwnerTrust | undefined> {
  const bytes = await readFile(path).catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  if (bytes === undefined) return undefined;
  try {
    const { pins, keys, signers, version, digest } = schemaAt(parseStrictJson(bytes)) ?? {};
    if (typeof version !== "string" || typeof digest !== "string") throw new Error("it has no version or no digest");
    return { pins: keysOf(pins), keys: keysOf(keys), signers: keysOf(signers), version: BigInt(version), digest };
  } catch (cause: unknown) {
    throw new Error(`the file ${path}, with the owner's keys that this device is pinned to, is damaged`, { cause });
  }
}

/** Replaces the file; it is on disk when this resolves, whole, also where the power fails meanwhile. */
export async function storeTrust(path: string, { pins, keys, signers, version, digest }: OwnerTrust): Promise<void> {
  const content = {
    version: String(version),
    digest,
    pins: textsOf(pins),
    keys: textsOf(keys),
    signers: textsOf(signers),
  };
  await replaceFile(path, `${JSON.stringify(content, undefined, 2)}\n`);
}

function keysOf(value: unknown): VerifyKey[] {
  if (!Array.isArray(value) || value.length === 0) throw new Error("it has no key");
  return value.map((text) => verifyKeyFromRaw(Buffer.from(String(text), "base64")));
}

function textsOf(keys: readonly VerifyKey[]): string[] {
  return keys.map(({ raw }) => Buffer.from(raw).toString("base64"));
}
