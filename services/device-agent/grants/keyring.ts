import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Envelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { openKeyringVersion } from "../../../lib/sign/keyring.ts";
import { createKeyring, type Keyring, type VerifyKey } from "../../../lib/sign/keys.ts";
import { GRANT_TYPE } from "../../../lib/sign/payload-types.ts";
import { loadTrust, storeTrust, type Trusted } from "./keyring-file.ts";

/** The keys that the device trusts for grants: those it was pinned to, then whatever these say. */
export interface GrantKeyring extends Keyring {
  /** The version that is in force; 0 while only the pinned keys are. */
  readonly version: bigint;
  /**
   * Takes over a newer version that a trusted key signed, once it is on disk, and resolves with true. False for a version
   * that is not above the one in force. Rejects with GRANT_INVALID for one that no trusted key signed, and with what the
   * file system throws; either way everything stays as it was.
   */
  trust(envelope: Envelope | undefined): Promise<boolean>;
}

/** What a keyring is opened with. */
export interface GrantKeyringOptions {
  /** Where the version in force is kept. */
  file: string;
  /** The keys that were given to the device by its owner. At least one. */
  pins: readonly VerifyKey[];
}

/**
 * Opens the keyring. What the file says goes before the pins, as long as it came from them: where the owner has pinned
 * other keys since, which the file does not know, these count and the file does not. Rejects where the file is damaged.
 */
export async function openGrantKeyring({ file, pins }: GrantKeyringOptions): Promise<GrantKeyring> {
  const pinned: Trusted = { version: 0n, keys: pins, pins };
  let trusted = chooseTrust(await loadTrust(file), pinned);
  let keyring = createKeyring(trusted.keys);
  let before: Promise<unknown> = Promise.resolve();

  const follow = async (envelope: Envelope | undefined): Promise<boolean> => {
    const opened = openKeyringVersion(envelope, keyring, GRANT_TYPE);
    if (!opened.ok) {
      const message = `the keyring cannot be trusted: ${opened.kind.replaceAll("_", " ")}`;
      throw fault(ErrorReason.GRANT_INVALID, {}, { message });
    }
    const { version, keys } = opened.keyring;
    if (version <= trusted.version) return false;
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

function chooseTrust(stored: Trusted | undefined, pinned: Trusted): Trusted {
  if (stored === undefined) return pinned;
  const has = (keys: readonly VerifyKey[], keyId: string): boolean => keys.some((key) => key.keyId === keyId);
  const samePins =
    stored.pins.length === pinned.pins.length && stored.pins.every(({ keyId }) => has(pinned.pins, keyId));
  const known = pinned.pins.some(({ keyId }) => has(stored.keys, keyId));
  return samePins || known ? stored : pinned;
}
