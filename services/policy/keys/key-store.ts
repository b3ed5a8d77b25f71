import { fromBinary, toBinary } from "@bufbuild/protobuf";
import type { Selectable } from "kysely";
import { type SignedEnvelope, SignedEnvelopeSchema } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { KeyRole } from "../../../gen/ts/reeve/key/v1/key_service_pb.ts";
import { prepared, type QueryRunner } from "../../../lib/store/prepared.ts";
import type { KeysTable, PolicyDatabase, PolicyTables } from "../storage/tables.ts";

export type KeyRow = Omit<Selectable<KeysTable>, "seq">;

/** The keys of policy's database. Pass the transaction inside one, the database elsewhere. */
export interface KeyStore {
  /** Every key there has been, newest first. */
  all(on: QueryRunner): Promise<KeyRow[]>;
  insert(on: QueryRunner, key: KeyRow): Promise<void>;
  /** Writes down where a key stands: state, times, and whether the private half is kept. */
  update(on: QueryRunner, key: KeyRow): Promise<void>;
  /** The keyrings of a role, the oldest first. */
  keyrings(on: QueryRunner, role: KeyRole): Promise<SignedEnvelope[]>;
  /** The newest keyring's version; 0 where there is none. */
  newestVersion(on: QueryRunner, role: KeyRole): Promise<number>;
  addKeyring(on: QueryRunner, role: KeyRole, version: number, envelope: SignedEnvelope, timeMs: number): Promise<void>;
  /** Rises with every change of any key. */
  revision(on: QueryRunner): Promise<number>;
}

/** The tables keys and keyrings. */
export function createKeyStore(db: PolicyDatabase): KeyStore {
  const all = prepared(() => db.selectFrom("keys").selectAll().orderBy("seq", "desc"));
  const insert = prepared((p: KeyRow) =>
    db.insertInto("keys").values({
      key_id: p.key_id,
      role: p.role,
      state: p.state,
      name: p.name,
      public: p.public,
      sealed: p.sealed,
      create_ms: p.create_ms,
      sign_ms: p.sign_ms,
      end_ms: p.end_ms,
    }),
  );
  const update = prepared((p: KeyRow) =>
    db
      .updateTable("keys")
      .set({ state: p.state, sealed: p.sealed, sign_ms: p.sign_ms, end_ms: p.end_ms })
      .where("role", "=", p.role)
      .where("key_id", "=", p.key_id),
  );
  const keyrings = prepared((p: { role: number }) =>
    db.selectFrom("keyrings").select("envelope").where("role", "=", p.role).orderBy("version"),
  );
  const newest = prepared((p: { role: number }) =>
    db.selectFrom("keyrings").select("version").where("role", "=", p.role).orderBy("version", "desc").limit(1),
  );
  const addKeyring = prepared((p: PolicyTables["keyrings"]) =>
    db.insertInto("keyrings").values({ role: p.role, version: p.version, envelope: p.envelope, time_ms: p.time_ms }),
  );
  const revision = prepared(() => db.selectFrom("keyrings").select((eb) => eb.fn.countAll<number>().as("changes")));
  return {
    all: (on) => all.all(on, {}),
    insert: async (on, key) => void (await insert.run(on, key)),
    update: async (on, key) => void (await update.run(on, key)),
    async keyrings(on, role) {
      const rows = await keyrings.all(on, { role });
      return rows.map(({ envelope }) => fromBinary(SignedEnvelopeSchema, envelope));
    },
    newestVersion: async (on, role) => (await newest.first(on, { role }))?.version ?? 0,
    async addKeyring(on, role, version, envelope, time_ms) {
      await addKeyring.run(on, { role, version, envelope: toBinary(SignedEnvelopeSchema, envelope), time_ms });
    },
    revision: async (on) => (await revision.first(on, {}))?.changes ?? 0,
  };
}
