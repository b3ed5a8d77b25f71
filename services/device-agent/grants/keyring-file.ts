import { readFile } from "node:fs/promises";
import { type VerifyKey, verifyKeyFromRaw } from "../../../lib/sign/keys.ts";
import { replaceFile } from "../replace-file.ts";

/** What a device trusts for grants. */
export interface Trusted {
  /** The keyring's version; 0 for the pinned keys. */
  version: bigint;
  keys: readonly VerifyKey[];
  /** The keys that were pinned when this version became active. */
  pins: readonly VerifyKey[];
}

/** Reads what `storeTrust` wrote; undefined where there is no file. Rejects where it holds anything else. */
export async function loadTrust(path: string): Promise<Trusted | undefined> {
  const text = await readFile(path, "utf8").catch((e: unknown) => {
    if (e instanceof Error && "code" in e && e.code === "ENOENT") return undefined;
    throw e;
  });
  if (text === undefined) return undefined;
  try {
    const { version, keys, pins } = JSON.parse(text);
    return { version: BigInt(version), keys: keysOf(keys), pins: keysOf(pins) };
  } catch (cause: unknown) {
    const message = `the file ${path} is damaged; remove it to begin again with the keys that are configured`;
    throw new Error(message, { cause });
  }
}

/** Replaces the file; it is on disk when this resolves, whole, also where the power fails meanwhile. */
export async function storeTrust(path: string, { version, keys, pins }: Trusted): Promise<void> {
  const content = { version: version.toString(), keys: keys.map(textOf), pins: pins.map(textOf) };
  await replaceFile(path, `${JSON.stringify(content)}\n`);
}

function keysOf(texts: readonly string[]): VerifyKey[] {
  if (texts.length === 0) throw new Error("no key");
  return texts.map((text) => verifyKeyFromRaw(Buffer.from(text, "base64")));
}

function textOf({ raw }: VerifyKey): string {
  return Buffer.from(raw).toString("base64");
}
