import { access } from "node:fs/promises";
import { join } from "node:path";
import { KeyRole, KeyState } from "../../../gen/ts/reeve/key/v1/key_service_pb.ts";
import type { SealingKey } from "../../../lib/identity/seal.ts";
import type { Logger } from "../../../lib/log/log.ts";
import { loadKeyFile } from "../../../lib/sign/key-file.ts";
import { signKeyring } from "../../../lib/sign/keyring.ts";
import { generateSigningKey, type SigningKey } from "../../../lib/sign/keys.ts";
import type { RecordedWrites } from "../recorded-writes.ts";
import type { PolicyDatabase } from "../tables.ts";
import type { KeyStore } from "./key-store.ts";
import { sealPrivateKey } from "./private-keys.ts";
import { SIGNED_ROLES, type SignedRole, STATEMENT_TYPES } from "./statement-types.ts";

/** What the first keys are made from. */
export interface FirstKeysOptions {
  db: PolicyDatabase;
  writes: RecordedWrites;
  store: KeyStore;
  sealing: SealingKey;
  /** Where an earlier version kept its keys in files. */
  stateDir: string;
  /** The audit log's name. Default "reeve/" and the checkpoint key's id. */
  origin: string | undefined;
  now: () => number;
  logger: Logger;
}

/** Files in which an earlier version kept the keys. */
const FILES: Readonly<Record<SignedRole, string>> = {
  [KeyRole.GRANT]: "grant.key",
  [KeyRole.CHECKPOINT]: "checkpoint.key",
};

/**
 * Makes the keys of a database that has none, or takes over those that an earlier version kept in files of the state
 * folder: ids and the log's name stay. Where replicas start at the same time the first one's keys are everybody's.
 */
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
  const { writes, store, sealing, stateDir, origin, now, logger } = options;
  const file = join(stateDir, FILES[role]);
  const found = await keyInFile(file);
  const key = found ?? generateSigningKey();
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
  const isFirst = await writes.write(async (trx) => {
    if ((await store.newestVersion(trx, role)) > 0) return false;
    await store.insert(trx, row);
    await store.addKeyring(trx, role, 1, envelope, nowMs);
    return true;
  });
  if (found && isFirst) logger.info({ file }, "a key was taken over into the database; the file is not read any more");
}

async function keyInFile(path: string): Promise<SigningKey | undefined> {
  const isThere = await access(path).then(
    () => true,
    () => false,
  );
  return isThere ? loadKeyFile(path) : undefined;
}
