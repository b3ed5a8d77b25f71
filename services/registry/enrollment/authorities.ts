import { createPublicKey } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Selectable } from "kysely";
import { DeviceIdentityChange } from "../../../gen/ts/reeve/audit/v1/record_pb.ts";
import {
  AuthoritySchema,
  type Authority as ShownAuthority,
} from "../../../gen/ts/reeve/enrollment/v1/authority_service_pb.ts";
import { type Authority, authorityFromPem, authorityId, createAuthority } from "../../../lib/identity/authority.ts";
import { fingerprintOf } from "../../../lib/identity/fingerprint.ts";
import { tlsKeyToPem } from "../../../lib/identity/request.ts";
import { type SealingKey, seal, unseal } from "../../../lib/identity/seal.ts";
import type { Logger } from "../../../lib/log/log.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import type { RegistryTables } from "../tables.ts";
import type { Changes } from "./changes.ts";

/** An authority as it is stored. */
export type AuthorityRow = Selectable<RegistryTables["device_authorities"]>;

/** The authorities that sign the certificates of devices, shared by all replicas. */
export interface Authorities {
  /** The one that signs, from the database. */
  signer(): Promise<Authority>;
  /** The certificates that are trusted now, PEM; as fresh as the last look into the database. */
  trusted(): readonly string[];
  /** Calls back when they change, until the returned function is called. */
  onChange(listener: () => void): () => void;
  /** All of them, the one that signs first. */
  list(): Promise<AuthorityRow[]>;
  /** Makes a new one, which signs once that is recorded. Its id. */
  rotate(actor: string): Promise<string>;
  /** Looks into the database now. */
  refresh(): Promise<void>;
  close(): void;
}

export interface AuthoritiesOptions {
  db: Database<RegistryTables>;
  writes: GroupCommit<RegistryTables>;
  changes: Changes;
  sealingKey: SealingKey;
  trustDomain: string;
  logger: Logger;
  now(): number;
  /** How often the database is looked into for another replica's rotation, in milliseconds. Default 2000. */
  pollMs?: number;
}

/** How long an authority is good for, in milliseconds: ten years. Rotation is what ends one. */
const AUTHORITY_TTL_MS = 10 * 365 * 24 * 3_600_000;

/** Opens the authorities and makes the first one where there is none. Rejects where the sealing key is another one. */
export async function openAuthorities(options: AuthoritiesOptions): Promise<Authorities> {
  const { db, writes, changes, sealingKey, logger, now, pollMs = 2000 } = options;
  const listeners = new Set<() => void>();
  let rows: AuthorityRow[] = [];
  // What the listeners know: an authority that is trusted no more goes without a change in the database.
  let notified = "";
  let signing: { id: string; authority: Authority } | undefined;

  const make = async (signs: 0 | 1): Promise<AuthorityRow> => {
    const { certificate, key } = await createAuthority({
      commonName: "reeve devices",
      trustDomain: options.trustDomain,
      ttlMs: AUTHORITY_TTL_MS,
      now: now(),
    });
    const id = authorityId(certificate);
    const sealed_key = seal(sealingKey, Buffer.from(tlsKeyToPem(key)), contextOf(id));
    return { id, certificate, sealed_key, signs, create_ms: now(), trust_end_ms: null };
  };
  const read = () => db.selectFrom("device_authorities").selectAll().orderBy("create_ms").orderBy("id").execute();
  const refresh = async (): Promise<void> => {
    rows = await read();
    const trusted = trustedOf(rows, now()).join();
    if (trusted === notified) return;
    notified = trusted;
    for (const listener of [...listeners]) listener();
  };
  const open = (row: AuthorityRow): Authority =>
    authorityFromPem(row.certificate, Buffer.from(unseal(sealingKey, row.sealed_key, contextOf(row.id))).toString());
  const signer = async (): Promise<Authority> => {
    const row = await db.selectFrom("device_authorities").selectAll().where("signs", "=", 1).executeTakeFirstOrThrow();
    if (signing?.id !== row.id) signing = { id: row.id, authority: open(row) };
    return signing.authority;
  };

  if (!(await read()).some(({ signs }) => signs === 1)) {
    const first = await make(1);
    await writes.write(async (trx) => {
      const made = await trx
        .insertInto("device_authorities")
        .values(first)
        .onConflict((conflict) => conflict.doNothing())
        .executeTakeFirst();
      if (made.numInsertedOrUpdatedRows === 1n) await changes.note(trx, recordOf(first, "", "the first authority"));
    });
    changes.wake();
  }
  await refresh();
  await signer();
  const timer = setInterval(() => {
    refresh().catch((err: unknown) => logger.warn({ err }, "device authorities not readable"));
  }, pollMs);
  timer.unref();

  return {
    signer,
    refresh,
    trusted: () => trustedOf(rows, now()),
    onChange(listener) {
      listeners.add(listener);
      return () => void listeners.delete(listener);
    },
    list: async () => (await read()).sort((a, b) => b.signs - a.signs || b.create_ms - a.create_ms),
    async rotate(actor) {
      const next = await make(0);
      // Trusted everywhere from here on, so that no replica meets a certificate of an authority that it does not know.
      const changeId = await writes.write(async (trx) => {
        await trx.insertInto("device_authorities").values(next).execute();
        return changes.plan(trx, recordOf(next, actor, ""), { kind: "authority", id: next.id });
      });
      await refresh();
      await changes.applied(changeId);
      await refresh();
      return next.id;
    },
    close: () => clearInterval(timer),
  };
}

/** The certificates among these that are trusted at that time. */
function trustedOf(rows: readonly AuthorityRow[], now: number): string[] {
  return rows
    .filter(({ trust_end_ms }) => trust_end_ms === null || trust_end_ms > now)
    .map(({ certificate }) => certificate);
}

function recordOf({ id, certificate }: AuthorityRow, actor: string, why: string) {
  const fingerprint = fingerprintOf(createPublicKey(certificate));
  return { change: DeviceIdentityChange.AUTHORITY_ROTATED, changeId: `authority/${id}`, fingerprint, actor, why };
}

function contextOf(id: string): string {
  return `device-authority/${id}`;
}

/** An authority for its callers. */
export function toAuthority(row: AuthorityRow): ShownAuthority {
  return create(AuthoritySchema, {
    id: row.id,
    certificate: row.certificate,
    signs: row.signs === 1,
    createTime: timestampFromMs(row.create_ms),
    ...(row.trust_end_ms === null ? {} : { trustEndTime: timestampFromMs(row.trust_end_ms) }),
  });
}
