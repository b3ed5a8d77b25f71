import { afterEach, beforeEach, expect, test } from "vitest";
import { type Database, openDatabase } from "./database.ts";
import { prepared } from "./prepared.ts";
import { type NoteTables, noteMigration } from "./testdata/notes.ts";

let db: Database<NoteTables>;

beforeEach(async () => {
  db = await openDatabase<NoteTables>({ path: ":memory:", migrations: [noteMigration] });
  for (const id of [1, 2, 3])
    await db
      .insertInto("notes")
      .values({ id, body: new Uint8Array([id]) })
      .execute();
});

afterEach(() => db.destroy());

test("runs one compiled query with other parameters", async () => {
  const byId = prepared((p: { id: number }) => db.selectFrom("notes").selectAll().where("id", "=", p.id));
  expect(await byId.first(db, { id: 2 })).toEqual({ id: 2, body: new Uint8Array([2]) });
  expect(await byId.first(db, { id: 3 })).toEqual({ id: 3, body: new Uint8Array([3]) });
  expect(await byId.first(db, { id: 4 })).toBeUndefined();
});

test("keeps the constants of the query beside its parameters", async () => {
  const between = prepared((p: { max: number; limit: number }) =>
    db.selectFrom("notes").select("id").where("id", ">", 1).where("id", "<=", p.max).orderBy("id").limit(p.limit),
  );
  expect(await between.all(db, { max: 3, limit: 9 })).toEqual([{ id: 2 }, { id: 3 }]);
  expect(await between.all(db, { max: 3, limit: 1 })).toEqual([{ id: 2 }]);
});

test("runs inside a transaction and counts the rows it changed", async () => {
  const raise = prepared((p: { by: number }) => db.updateTable("notes").set((eb) => ({ id: eb("id", "+", p.by) })));
  const attempt = db.transaction().execute(async (trx) => {
    expect(await raise.run(trx, { by: 10 })).toBe(3);
    throw new Error("undo");
  });
  await expect(attempt).rejects.toThrow("undo");
  expect(await db.selectFrom("notes").select("id").orderBy("id").execute()).toEqual([{ id: 1 }, { id: 2 }, { id: 3 }]);
});

test("returns what an insert returns", async () => {
  const insert = prepared((p: { id: number; body: Uint8Array }) =>
    db
      .insertInto("notes")
      .values({ id: p.id, body: p.body })
      .onConflict((c) => c.doNothing())
      .returning("id"),
  );
  expect(await insert.first(db, { id: 9, body: new Uint8Array() })).toEqual({ id: 9 });
  expect(await insert.first(db, { id: 9, body: new Uint8Array() })).toBeUndefined();
});

test("refuses a build that reads, computes with or spreads its parameters", () => {
  const query = db.selectFrom("notes").select("id");
  expect(() => prepared((p: { id: number }) => query.where("id", "=", p.id + 1))).toThrow(/has no value/);
  expect(() => prepared((p: { id: number; body: Uint8Array }) => db.insertInto("notes").values({ ...p }))).toThrow(
    /spread/,
  );
});
