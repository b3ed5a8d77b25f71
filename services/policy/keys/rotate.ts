import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type AuditRecord, AuditRecordSchema } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import { type KeyRole, KeyRoleSchema, KeyState } from "../../../gen/ts/reeve/key/v1/key_service_pb.ts";
import { invalidInput } from "../../../lib/fault/invalid-input.ts";
import type { SealingKey } from "../../../lib/identity/seal.ts";
import { signKeyring } from "../../../lib/sign/keyring.ts";
import { generateSigningKey, verifyKeyFromRaw } from "../../../lib/sign/keys.ts";
import type { QueryRunner } from "../../../lib/store/prepared.ts";
import type { AuditLog } from "../audit/log.ts";
import { valueName } from "../facts/facts.ts";
import type { RecordedWrites } from "../storage/recorded-writes.ts";
import type { KeyRing } from "./key-ring.ts";
import { dueStep, type KeyStep, rotation, validKeys } from "./key-steps.ts";
import type { KeyRow, KeyStore } from "./key-store.ts";
import { openPrivateKey, sealPrivateKey } from "./private-keys.ts";
import { type SignedRole, STATEMENT_TYPES } from "./statement-types.ts";

/** Changes keys, and follows what time and other replicas change. */
export interface KeyRotator {
  /**
   * Makes a new key of a role, which takes the old one's place during so many milliseconds. Key, keyring and audit record
   * are one transaction. Throws INVALID_INPUT while the change before is under way.
   */
  rotate(role: SignedRole, overlapMs: number, actor: string): Promise<KeyRow>;
  /** Loads what other replicas changed, and makes the changes that are due. As it is done regularly by itself. */
  check(): Promise<void>;
  /** Stops looking. */
  close(): Promise<void>;
}

export interface RotatorOptions {
  writes: RecordedWrites;
  store: KeyStore;
  ring: KeyRing;
  log: AuditLog;
  sealing: SealingKey;
  now: () => number;
  /** How often it looks by itself, in milliseconds; 0 for never. */
  pollMs: number;
  /** Receives what went wrong in a regular look. */
  onError: (error: unknown) => void;
}

/** A rotator; its first regular look comes after `pollMs`. */
export function createKeyRotator(options: RotatorOptions): KeyRotator {
  const { writes, store, ring, now, pollMs, onError } = options;

  const look = async (): Promise<void> => {
    await ring.refresh();
    if (dueStep(ring.current().rows, now()) === undefined) return;
    await writes.write(async (trx) => {
      const nowMs = now();
      for (let step = dueStep(await store.all(trx), nowMs); step; step = dueStep(await store.all(trx), nowMs)) {
        await write(options, trx, step, { actor: "policy", nowMs });
      }
    });
    await ring.refresh();
  };
  let looking: Promise<void> = Promise.resolve();
  const check = (): Promise<void> => (looking = looking.catch(() => {}).then(look));
  const timer = pollMs > 0 ? setInterval(() => void check().catch(onError), pollMs).unref() : undefined;

  return {
    async rotate(role, overlapMs, actor) {
      const nowMs = now();
      // Outside of the job, which may be run again.
      const made = newKey(options, role, nowMs);
      const key = await writes.write(async (trx) => {
        const step = rotation(await store.all(trx), made, nowMs, overlapMs);
        if (typeof step === "string") throw refused(step);
        await write(options, trx, step, { actor, nowMs });
        return step.changed.find((row) => row.key_id === made.key_id) ?? made;
      });
      await ring.refresh();
      return key;
    },
    check,
    async close() {
      clearInterval(timer);
      await looking.catch(() => {});
    },
  };
}

function newKey({ ring, sealing }: RotatorOptions, role: SignedRole, nowMs: number): KeyRow {
  const key = generateSigningKey();
  const name = ring.current().rows.find((row) => row.role === role)?.name ?? "";
  const sealed = sealPrivateKey(sealing, role, key);
  const times = { create_ms: nowMs, sign_ms: nowMs, end_ms: null };
  return { key_id: key.keyId, role, state: KeyState.NEXT, name, public: key.raw, sealed, ...times };
}

/** One step in one transaction: the keys, the keyring that says so, and the records. */
async function write(
  { store, log, sealing }: RotatorOptions,
  trx: QueryRunner,
  step: KeyStep,
  { actor, nowMs }: { actor: string; nowMs: number },
): Promise<void> {
  const role = step.role as SignedRole;
  const before = new Map((await store.all(trx)).filter((row) => row.role === role).map((row) => [row.key_id, row]));
  for (const row of step.changed) await (before.has(row.key_id) ? store.update(trx, row) : store.insert(trx, row));
  const valid = validKeys(step.after, role);
  // Who trusts the version before trusts this signature: the signer was in it.
  const signer = valid.find((row) => row.state === KeyState.ACTIVE && before.has(row.key_id));
  if (!signer) throw new Error("no key of the version before signs");
  const version = (await store.newestVersion(trx, role)) + 1;
  const envelope = signKeyring(openPrivateKey(sealing, signer), {
    version: BigInt(version),
    statementType: STATEMENT_TYPES[role],
    keys: valid.map((row) => verifyKeyFromRaw(row.public)),
  });
  await store.addKeyring(trx, role, version, envelope, nowMs);
  for (const change of step.recorded) await log.append(trx, keyChangedRecord(change, actor, nowMs), "elsewhere");
}

function refused(why: string): Error {
  const message = `${why}; try again when \`reeve key list\` shows that it has ended`;
  return invalidInput([{ field: "role", rule: "rotating", message }]);
}

/** The record of a change of a key. The actor is who asked for it, or "policy" where time brought it. */
function keyChangedRecord({ key, change }: KeyStep["recorded"][number], actor: string, nowMs: number): AuditRecord {
  const role = key.role as KeyRole;
  const publicKey = Buffer.from(key.public).toString("base64");
  return create(AuditRecordSchema, {
    version: 1,
    time: timestampFromMs(nowMs),
    actor,
    resource: `keys/${valueName(KeyRoleSchema, role)}/${key.key_id}`,
    event: { case: "keyChanged", value: { role, keyId: key.key_id, change, publicKey } },
  });
}
