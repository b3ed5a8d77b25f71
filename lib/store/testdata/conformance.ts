import { type Kysely, sql } from "kysely";
import { describe, expect, test } from "vitest";
import { type Database, dialectOf, type Migration } from "../database.ts";
import { IncompatibleDatabase } from "../incompatible-database.ts";
import { prepared } from "../prepared.ts";
import { type NoteTables, noteMigration } from "./notes.ts";
import { SHARED_STORE_KINDS, type StoreKind, useStore } from "./stores.ts";
import { type TagTables, tagMigration } from "./tags.ts";

/** What every database of `openDatabase` must do, wherever it keeps its rows. */
export function databaseConformance(kind: StoreKind): void {
  describe(kind, () => {
    const store = useStore(kind);
    const open = () => store.open<TagTables>([noteMigration, tagMigration]);
    const note = (db: Database<TagTables>, id: number, body = new Uint8Array()) =>
      db.insertInto("notes").values({ id, body }).execute();

    test("says which kind it is, also inside a transaction", async () => {
      const db = await open();
      const wanted = kind === "PostgreSQL" ? "postgres" : "sqlite";
      expect(dialectOf(db)).toBe(wanted);
      await db.transaction().execute(async (trx) => expect(dialectOf(trx)).toBe(wanted));
    });

    test("returns bytes as plain bytes and integers as numbers", async () => {
      const db = await open();
      const body = Uint8Array.from({ length: 256 }, (_, i) => i);
      await note(db, 2 ** 53 - 1, body);
      await note(db, -1);
      const rows = await db.selectFrom("notes").selectAll().orderBy("id").execute();
      expect(rows).toEqual([
        { id: -1, body: new Uint8Array() },
        { id: 2 ** 53 - 1, body },
      ]);
      expect(rows.map((row) => row.body.constructor)).toEqual([Uint8Array, Uint8Array]);
    });

    test("counts and adds in numbers", async () => {
      const db = await open();
      for (const id of [1, 2, 3]) await note(db, id);
      const { rows } = await sql`select count(*) as n, sum(id) as total, max(id) as newest from notes`.execute(db);
      expect(rows).toEqual([{ n: 3, total: 6, newest: 3 }]);
    });

    test("numbers rows of a bigserial key by itself, and returns the number", async () => {
      const db = await open();
      await note(db, 1);
      const insert = (name: string) =>
        db.insertInto("tags").values({ seq: undefined, note: 1, name }).returning("seq").executeTakeFirstOrThrow();
      expect([await insert("a"), await insert("b")]).toEqual([{ seq: 1 }, { seq: 2 }]);
    });

    test("says how many rows a statement has changed", async () => {
      const db = await open();
      const insert = prepared((p: { id: number; body: Uint8Array }) =>
        db
          .insertInto("notes")
          .values({ id: p.id, body: p.body })
          .onConflict((conflict) => conflict.column("id").doNothing()),
      );
      const body = new Uint8Array();
      expect([await insert.run(db, { id: 1, body }), await insert.run(db, { id: 1, body })]).toEqual([1, 0]);
      await insert.run(db, { id: 2, body });
      expect((await db.updateTable("notes").set({ body }).executeTakeFirst()).numUpdatedRows).toBe(2n);
      expect((await db.deleteFrom("notes").where("id", "=", 2).executeTakeFirst()).numDeletedRows).toBe(1n);
    });

    test("updates the row that is in the way of an insert", async () => {
      const db = await open();
      const upsert = (body: Uint8Array) =>
        db
          .insertInto("notes")
          .values({ id: 1, body })
          .onConflict((conflict) => conflict.column("id").doUpdateSet((eb) => ({ body: eb.ref("excluded.body") })))
          .execute();
      await upsert(new Uint8Array([1]));
      await upsert(new Uint8Array([2]));
      expect(await db.selectFrom("notes").select("body").execute()).toEqual([{ body: new Uint8Array([2]) }]);
    });

    test("enforces foreign keys", async () => {
      const db = await open();
      const orphan = db.insertInto("tags").values({ seq: undefined, note: 9, name: "x" }).execute();
      await expect(orphan).rejects.toThrow(/foreign key/i);
    });

    test("rolls a transaction back as a whole", async () => {
      const db = await open();
      const undone = db.transaction().execute(async (trx) => {
        await note(trx, 1);
        throw new Error("undo");
      });
      await expect(undone).rejects.toThrow("undo");
      expect(await db.selectFrom("notes").selectAll().execute()).toEqual([]);
    });

    test("rolls all migrations of a start back when one fails", async () => {
      const broken: Migration = { name: "0003_broken", up: (db) => sql`nonsense`.execute(db).then(() => {}) };
      await expect(store.open([noteMigration, tagMigration, broken])).rejects.toThrow(/nonsense/);
      const db = await open();
      expect(await db.selectFrom("notes").selectAll().execute()).toEqual([]);
    });
  });

  if (SHARED_STORE_KINDS.includes(kind)) sharedConformance(kind);
}

/** What holds where a second opening finds what the first one has written. */
function sharedConformance(kind: StoreKind): void {
  describe(`${kind}, opened again`, () => {
    const store = useStore(kind);

    test("runs each migration once, and later ones on the next open", async () => {
      const first = await store.open<NoteTables>([noteMigration]);
      await first.insertInto("notes").values({ id: 1, body: new Uint8Array() }).execute();
      const second = await store.open<TagTables>([noteMigration, tagMigration]);
      expect(await second.selectFrom("notes").select("id").execute()).toEqual([{ id: 1 }]);
      expect(await second.selectFrom("tags").selectAll().execute()).toEqual([]);
    });

    test("refuses a database that is newer than the code and leaves it alone", async () => {
      await store.open([noteMigration, tagMigration]);
      await expect(store.open([noteMigration])).rejects.toThrow(
        /is newer than this program: it holds the migrations 0002_tags/,
      );
      await expect(store.open([noteMigration, tagMigration])).resolves.toBeDefined();
    });

    test("brings what a step left under its name of before here, once, and does not make it anew", async () => {
      const first = await store.open<NoteTables>([noteMigration]);
      await first.insertInto("notes").values({ id: 1, body: new Uint8Array() }).execute();
      const rename = (db: Kysely<unknown>) => db.schema.alterTable("notes").renameTo("papers").execute();
      const renamed = { ...noteMigration, name: "0001_papers", before: { name: noteMigration.name, up: rename } };
      for (const _ of [1, 2]) {
        const db = await store.open<{ papers: NoteTables["notes"] }>([renamed]);
        expect(await db.selectFrom("papers").select("id").execute()).toEqual([{ id: 1 }]);
      }
    });

    test("refuses a database of an earlier generation with what to do, and leaves it alone", async () => {
      const first = await store.open([noteMigration]);
      const names = () => sql<{ name: string }>`select name from kysely_migration`.execute(first);
      await sql`update kysely_migration set name = '0001_notes'`.execute(first);
      const refused = await store.open([noteMigration]).catch((e: unknown) => e);
      expect(refused).toBeInstanceOf(IncompatibleDatabase);
      expect(refused).toMatchObject({
        message: expect.stringContaining("was written by an earlier, incompatible version of Reeve"),
        remedy: expect.stringMatching(/^(Rename the folder .+, or choose another one|Use another database)/),
      });
      expect((await names()).rows).toEqual([{ name: "0001_notes" }]);
    });

    test("shows what is committed, and nothing before", async () => {
      const db = await store.open<NoteTables>([noteMigration]);
      const ids = () => db.selectFrom("notes").select("id").execute();
      await db.transaction().execute(async (trx) => {
        await trx.insertInto("notes").values({ id: 1, body: new Uint8Array() }).execute();
        expect(await ids()).toEqual([]);
      });
      expect(await ids()).toEqual([{ id: 1 }]);
    });
  });
}
