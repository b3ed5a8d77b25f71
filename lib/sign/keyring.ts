import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type Keyring as KeyringMessage,
  KeyringSchema,
  type SignedEnvelope,
} from "../../gen/ts/reeve/common/v1/signed_pb.ts";
import { refused, signEnvelope, type VerifyFailure, verifyEnvelope } from "./dsse.ts";
import { type Keyring, PUBLIC_KEY_BYTES, type SigningKey, type VerifyKey, verifyKeyFromRaw } from "./keys.ts";
import { KEYRING_TYPE } from "./payload-types.ts";

/** The keys that may sign one kind of statement, as one version of a keyring says. */
export interface KeyringVersion {
  /** Rises by one with each change; the first is 1. */
  version: bigint;
  /** What the keys sign, such as "application/vnd.reeve.grant.v1". */
  statementType: string;
  /** The keys that are valid now, the one that signs first. At least 1, at most 16. */
  keys: readonly VerifyKey[];
}

/** What opening a keyring gives: its content only where a trusted key signed it. */
export type KeyringResult = { ok: true; keyring: KeyringVersion } | VerifyFailure;

/** More keys than this are not valid at the same time. */
const MAX_KEYS = 16;

/** Signs a version of a keyring with a key of the version before; the first version with a key of its own. */
export function signKeyring(key: SigningKey, { version, statementType, keys }: KeyringVersion): SignedEnvelope {
  const message = create(KeyringSchema, { version, statementType, publicKeys: keys.map(({ raw }) => raw) });
  return signEnvelope(key, KEYRING_TYPE, toBinary(KeyringSchema, message));
}

/**
 * Opens a version of a keyring that a trusted key signed. wrong_type also for a keyring of other statements. Whether the
 * version is newer than the caller's is the caller's to say. Never throws, whatever the envelope holds.
 */
export function openKeyringVersion(
  envelope: SignedEnvelope | undefined,
  trusted: Keyring,
  statementType: string,
): KeyringResult {
  const opened = verifyEnvelope(envelope, trusted, KEYRING_TYPE);
  if (!opened.ok) return opened;
  const message = decode(opened.payload);
  const keyring = message && versionOf(message);
  if (keyring === undefined) return refused("malformed");
  return keyring.statementType === statementType ? { ok: true, keyring } : refused("wrong_type");
}

/** The number of a version, for sorting and comparing only: nothing about it is verified. 0 where it has none. */
export function unverifiedVersion({ payload }: SignedEnvelope): bigint {
  return decode(payload)?.version ?? 0n;
}

function versionOf({ version, statementType, publicKeys }: KeyringMessage): KeyringVersion | undefined {
  const count = publicKeys.length;
  const isWhole =
    version > 0n && count > 0 && count <= MAX_KEYS && publicKeys.every((raw) => raw.length === PUBLIC_KEY_BYTES);
  return isWhole ? { version, statementType, keys: publicKeys.map(verifyKeyFromRaw) } : undefined;
}

function decode(bytes: Uint8Array): KeyringMessage | undefined {
  try {
    return fromBinary(KeyringSchema, bytes);
  } catch {
    return undefined;
  }
}
