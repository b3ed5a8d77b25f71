import type { KeyRole } from "../../../gen/ts/reeve/key/v1/key_service_pb.ts";
import { SealError, type SealingKey, seal, unseal } from "../../../lib/identity/seal.ts";
import { type SigningKey, signingKeyFromPem, signingKeyToPem } from "../../../lib/sign/keys.ts";
import type { KeyRow } from "./key-store.ts";

/** The private half of a key as the database keeps it. */
export function sealPrivateKey(sealing: SealingKey, role: KeyRole, key: SigningKey): Uint8Array {
  return seal(sealing, Buffer.from(signingKeyToPem(key)), contextOf(role, key.keyId));
}

/** The key pair of a stored key. Throws where it is retired, or was sealed with another key. */
export function openPrivateKey(sealing: SealingKey, { role, key_id, sealed }: KeyRow): SigningKey {
  if (sealed === null) throw new Error(`the key ${key_id} is retired: its private half is not kept`);
  try {
    return signingKeyFromPem(Buffer.from(unseal(sealing, sealed, contextOf(role, key_id))).toString("utf8"));
  } catch (cause: unknown) {
    if (!(cause instanceof SealError)) throw cause;
    const message =
      `the private key ${key_id} in policy's database was sealed with another sealing key. ` +
      "Give every replica the same file in REEVE_SEALING_KEY_FILE; a restored database needs the one it was written with.";
    throw new Error(message, { cause });
  }
}

function contextOf(role: number, keyId: string): string {
  return `policy-key/${role}/${keyId}`;
}
