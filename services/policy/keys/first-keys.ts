import { KeyRole, KeyState } from "../../../gen/ts/reeve/key/v1/key_service_pb.ts";
import type { SealingKey } from "../../../lib/identity/seal.ts";
import { signKeyring } from "../../../lib/sign/keyring.ts";
import { generateSigningKey } from "../../../lib/sign/keys.ts";
import type { RecordedWrites } from "../storage/recorded-writes.ts";
import type { PolicyDatabase } from "../storage/tables.ts";
import type { KeyStore } from "./key-store.ts";
import { sealPrivateKey } from "./private-keys.ts";
import { SIGNED_ROLES, type SignedRole, STATEMENT_TYPES } from "./statement-types.ts";

export interface FirstKeysOptions {
  db: PolicyDatabase;
  writes: RecordedWrites;
  store: KeyStore;
  sealing: SealingKey;
  /** The audit log's name. Default "reeve/" and the checkpoint key's id. */
  origin: string | undefined;
  now: () => number;
}

/** Makes the keys of a database that has none. Where replicas start at the same time, they share the keys of the first. */
export async function ensureFirstKeys(options: FirstKeysOptions): Promise<void> {
  const { db, store, origin } = options;
  const rows = await store.all(db);
  for (const role of SIGNED_ROLES) {
    if (!rows.some((row) => row.role === role)) await makeFirst(options, role);
  }
  const name = (await store.all(db)).find((row) => row.role === KeyRole.CHECKPOINT)?.name;
  if (origin === undefined || origin === name) return;
  throw new Error(`the audit log is called ${name}: it keeps this name, so its origin cannot be set to ${origin}`);
}

async function makeFirst(options: FirstKeysOptions, role: SignedRole): Promise<void> {
  const { writes, store, sealing, origin, now } = options;
  const key = generateSigningKey();
  const nowMs = now();
  const row = {
    key_id: key.keyId,
    role,
    state: KeyState.ACTIVE,
    name: role === KeyRole.CHECKPOINT ? (origin ?? `reeve/${key.keyId}`) : "",
    public: key.raw,
    sealed: sealPrivateKey(sealing, role, key),
    create_ms: nowMs,
    sign_ms: nowMs,
    end_ms: null,
  };
  const envelope = signKeyring(key, { version: 1n, statementType: STATEMENT_TYPES[role], keys: [key] });
  await writes.write(async (trx) => {
    if ((await store.newestVersion(trx, role)) > 0) return;
    await store.insert(trx, row);
    await store.addKeyring(trx, role, 1, envelope, nowMs);
  });
}
