import { readFile } from "node:fs/promises";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { openKeyringVersion, unverifiedVersion } from "../../../lib/sign/keyring.ts";
import { createKeyring, type Keyring, type VerifyKey, verifyKeyFromRaw } from "../../../lib/sign/keys.ts";
import { GRANT_TYPE } from "../../../lib/sign/payload-types.ts";
import { replaceFile } from "../replace-file.ts";

/** The keys that the device trusts for grants: those it was pinned to, then whatever these say. */
export interface GrantKeyring extends Keyring {
  /** The active version; that of the pins while only these are. */
  readonly version: bigint;
  /**
   * Accepts a newer version that a trusted key signed, once it is on disk, and resolves with true. False for a version
   * that is not above the active one, whichever key signed it: keys that have retired do not come back. Rejects with
   * GRANT_INVALID for one that no trusted key signed, and with what the file system throws; either way everything stays as
   * it was.
   */
  trust(envelope: SignedEnvelope | undefined): Promise<boolean>;
}

export interface GrantKeyringOptions {
  /** Where the active version is kept. */
  file: string;
  /** The keys that were given to the device by its owner. At least one. */
  pins: readonly VerifyKey[];
  /** The version of the keyring that the pins are from. Default 0: not known. */
  pinnedVersion?: bigint;
}

/**
 * Opens the keyring. What the file says goes before the pins, as long as it came from them: where the owner has pinned
 * other keys since, which the file does not know, or a newer version, these count and the file does not. Rejects where
 * the file is damaged.
 */
export async function openGrantKeyring(options: GrantKeyringOptions): Promise<GrantKeyring> {
  const { file, pins, pinnedVersion = 0n } = options;
  const pinned: Trusted = { version: pinnedVersion, keys: pins, pins };
  let trusted = chooseTrust(await loadTrust(file), pinned);
  let keyring = createKeyring(trusted.keys);
  let before: Promise<unknown> = Promise.resolve();

  const follow = async (envelope: SignedEnvelope | undefined): Promise<boolean> => {
    // Before its signature: of what is old it does not matter who signed it.
    if (envelope !== undefined && isOld(unverifiedVersion(envelope), trusted)) return false;
    const opened = openKeyringVersion(envelope, keyring, GRANT_TYPE);
    if (!opened.ok) {
      const message = `the keyring cannot be trusted: ${opened.kind.replaceAll("_", " ")}`;
      throw fault(ErrorReason.GRANT_INVALID, {}, { message });
    }
    const { version, keys } = opened.keyring;
    const next = { version, keys, pins };
    await storeTrust(file, next);
    keyring = createKeyring(keys);
    trusted = next;
    return true;
  };
  return {
    get version() {
      return trusted.version;
    },
    find: (keyId) => keyring.find(keyId),
    trust(envelope) {
      // One after another: each is verified by what the one before has left.
      const done = before.then(() => follow(envelope));
      before = done.catch(() => {});
      return done;
    },
  };
}

/** 0 is not a version: a keyring with it is refused. */
function isOld(version: bigint, trusted: Trusted): boolean {
  return version > 0n && version <= trusted.version;
}

function chooseTrust(stored: Trusted | undefined, pinned: Trusted): Trusted {
  if (stored === undefined || stored.version < pinned.version) return pinned;
  const has = (keys: readonly VerifyKey[], keyId: string): boolean => keys.some((key) => key.keyId === keyId);
  const samePins =
    stored.pins.length === pinned.pins.length && stored.pins.every(({ keyId }) => has(pinned.pins, keyId));
  const known = pinned.pins.some(({ keyId }) => has(stored.keys, keyId));
  return samePins || known ? stored : pinned;
}

/** What a device trusts for grants. */
interface Trusted {
  /** The keyring's version; 0 for the pinned keys. */
  version: bigint;
  keys: readonly VerifyKey[];
  /** The keys that were pinned when this version became active. */
  pins: readonly VerifyKey[];
}

/** Reads what `storeTrust` wrote; undefined where there is no file. Rejects where it holds anything else. */
async function loadTrust(path: string): Promise<Trusted | undefined> {
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
async function storeTrust(path: string, { version, keys, pins }: Trusted): Promise<void> {
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
