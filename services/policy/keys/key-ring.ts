import type { SignedEnvelope } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import { KeyRole, KeyState } from "../../../gen/ts/reeve/key/v1/key_service_pb.ts";
import type { SealingKey } from "../../../lib/identity/seal.ts";
import { type BatchSigner, createBatchSigner } from "../../../lib/sign/batch.ts";
import { type SigningKey, type VerifyKey, verifyKeyFromRaw } from "../../../lib/sign/keys.ts";
import { type NoteKey, noteKeyOf } from "../../../lib/sign/note.ts";
import { GRANT_TYPE } from "../../../lib/sign/payload-types.ts";
import { formatVkeys } from "../../../lib/sign/vkeys.ts";
import type { QueryRunner } from "../../../lib/store/prepared.ts";
import type { PolicyDatabase } from "../storage/tables.ts";
import { validKeys } from "./key-steps.ts";
import type { KeyRow, KeyStore } from "./key-store.ts";
import { openPrivateKey } from "./private-keys.ts";
import type { SignedRole } from "./statement-types.ts";

/** The keys as they stood at one moment. */
export interface Keys {
  /** Rises with every change. */
  revision: number;
  /** Every key there has been, newest first. */
  rows: readonly KeyRow[];
  grantKey: SigningKey;
  /** What devices should trust for grants now, the one that signs first. */
  grantKeys: readonly VerifyKey[];
  /** The audit log's name. */
  logName: string;
  /** All sign each checkpoint; more than one while they overlap. */
  checkpointSigners: readonly [SigningKey, ...SigningKey[]];
  /** Every key that the log has had, newest first. */
  checkpointKeys: readonly [NoteKey, ...NoteKey[]];
  /** The same as text, one a line, in the form of C2SP signed notes. */
  vkeys: string;
  /** By role: signed keyrings, the oldest first, each signed by a key of the one before. */
  keyrings: Readonly<Record<SignedRole, readonly SignedEnvelope[]>>;
}

/** The keys of a database that several replicas share. */
export interface KeyRing {
  /** As last looked at. */
  current(): Keys;
  /** As a transaction sees them; what is current stays as it is, because the transaction may still be rolled back. */
  seenBy(trx: QueryRunner): Promise<Keys>;
  /** Loads what has changed. */
  refresh(): Promise<void>;
  /** Calls the listener with every change that was loaded, until it is stopped. The listener must not throw. */
  onChange(listener: (keys: Keys) => void): () => void;
}

/** Loads the keys. Rejects where there are none yet, and where the sealing key is not the one they were sealed with. */
export async function openKeyRing(db: PolicyDatabase, store: KeyStore, sealing: SealingKey): Promise<KeyRing> {
  const listeners = new Set<(keys: Keys) => void>();
  const load = async (on: QueryRunner): Promise<Keys> => {
    const revision = await store.revision(on);
    const rows = await store.all(on);
    const keyrings = {
      [KeyRole.GRANT]: await store.keyrings(on, KeyRole.GRANT),
      [KeyRole.CHECKPOINT]: await store.keyrings(on, KeyRole.CHECKPOINT),
    };
    return { ...openKeys(rows, sealing), revision, rows, keyrings };
  };
  let current = await load(db);
  return {
    current: () => current,
    async seenBy(trx) {
      return (await store.revision(trx)) === current.revision ? current : load(trx);
    },
    async refresh() {
      if ((await store.revision(db)) <= current.revision) return;
      const found = await load(db);
      if (found.revision <= current.revision) return;
      current = found;
      for (const listener of listeners) listener(found);
    },
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
  };
}

function openKeys(rows: readonly KeyRow[], sealing: SealingKey): Omit<Keys, "revision" | "rows" | "keyrings"> {
  const grants = validKeys(rows, KeyRole.GRANT);
  const heads = validKeys(rows, KeyRole.CHECKPOINT);
  const [grantKey] = grants.filter(isActive).map((row) => openPrivateKey(sealing, row));
  const [signer, ...signers] = heads.filter(isActive).map((row) => openPrivateKey(sealing, row));
  const [newest, ...older] = rows.filter((row) => row.role === KeyRole.CHECKPOINT).map(noteKey);
  if (!grantKey || !signer || !newest) throw new Error("policy's database holds no keys that sign");
  const checkpointKeys: [NoteKey, ...NoteKey[]] = [newest, ...older];
  return {
    grantKey,
    grantKeys: grants.map((row) => verifyKeyFromRaw(row.public)),
    logName: newest.name,
    checkpointSigners: [signer, ...signers],
    checkpointKeys,
    vkeys: formatVkeys(checkpointKeys),
  };
}

function isActive({ state }: KeyRow): boolean {
  return state === KeyState.ACTIVE;
}

function noteKey({ name, public: raw }: KeyRow): NoteKey {
  return noteKeyOf(name, verifyKeyFromRaw(raw));
}

/** Signs grants with the key that signs now. */
export function createGrantSigner(ring: Pick<KeyRing, "current">): BatchSigner {
  let key = ring.current().grantKey;
  let signer = createBatchSigner({ key, statementType: GRANT_TYPE });
  return {
    sign(statement) {
      const { grantKey } = ring.current();
      if (grantKey !== key) {
        key = grantKey;
        signer = createBatchSigner({ key, statementType: GRANT_TYPE });
      }
      return signer.sign(statement);
    },
  };
}
