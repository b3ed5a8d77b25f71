import { sql } from "kysely";
import { beforeEach, describe, expect, test, vi } from "vitest";
import type { Database } from "../database.ts";
import { createGroupCommit, type GroupCommit } from "../group-commit.ts";
import { forRows, type RowKind } from "../rows.ts";
import { type NoteTables, noteMigration } from "./notes.ts";
import { type StoreKind, useStore } from "./stores.ts";

/** What a group commit must do on every database. */
export function groupCommitConformance(kind: StoreKind): void {
  describe(`a group commit on ${kind}`, () => {
    const store = useStore(kind);
    let db: Database<NoteTables>;
    let writes: GroupCommit<NoteTables>;
    let lazyErrors: Error[];

    beforeEach(async () => {
      db = await store.open<NoteTables>([noteMigration]);
      lazyErrors = [];
      writes = createGroupCommit(db, { onLazyError: (e) => lazyErrors.push(e), lock: "notes" });
    });

    const insert = (id: number) =>
      writes.write(async (trx) => {
        await trx.insertInto("notes").values({ id, body: new Uint8Array() }).execute();
        return id;
      });
    const ids = async () => (await db.selectFrom("notes").select("id").orderBy("id").execute()).map((row) => row.id);

    test("answers each writer with its own value, once the row is committed", async () => {
      const values = await Promise.all([1, 2, 3].map(async (id) => [await insert(id), (await ids()).includes(id)]));
      expect(values).toEqual([
        [1, true],
        [2, true],
        [3, true],
      ]);
    });

    test("runs jobs in the order of the calls, through more than one batch", async () => {
      const ran: number[] = [];
      const order = Array.from({ length: 1200 }, (_, id) => id);
      await Promise.all(order.map((id) => writes.write(async () => void ran.push(id))));
      expect(ran).toEqual(order);
    });

    test("rolls a failing job back alone, and writes its neighbors", async () => {
      const failing = writes.write(async (trx) => {
        await trx.insertInto("notes").values({ id: 50, body: new Uint8Array() }).execute();
        throw new Error("changed my mind");
      });
      const results = await Promise.allSettled([insert(1), failing, insert(1), insert(2)]);
      expect(results.map((result) => result.status)).toEqual(["fulfilled", "rejected", "rejected", "fulfilled"]);
      expect(results[1]).toMatchObject({ reason: new Error("changed my mind") });
      expect(results[2]).toMatchObject({ reason: { message: expect.stringMatching(/unique/i) } });
      expect(await ids()).toEqual([1, 2]);
    });

    test("writes a lazy job with the next batch, in its place", async () => {
      const ran: string[] = [];
      writes.writeLazily(async () => ran.push("lazy"));
      await writes.write(async () => ran.push("awaited"));
      expect(ran).toEqual(["lazy", "awaited"]);
    });

    test("writes a lazy job by itself when nothing else is written", async () => {
      await new Promise((resolve) => writes.writeLazily(async () => resolve(undefined)));
    });

    test("reports a lazy job that failed and keeps its neighbors", async () => {
      writes.writeLazily(async () => {
        throw new Error("lost");
      });
      await insert(1);
      expect(lazyErrors).toEqual([new Error("lost")]);
      expect(await ids()).toEqual([1]);
    });

    test("shows what was written then synced", async () => {
      await writes.writeThenSync((trx) => trx.insertInto("notes").values({ id: 7, body: new Uint8Array() }).execute());
      expect(await ids()).toEqual([7]);
    });

    /** Inserts a note of so many bytes; false where there is one with that id. */
    const adding = (): RowKind<NoteTables, { id: number; size?: number }, boolean> => {
      const many = forRows<{ id: number; body: Uint8Array }, { id: number }>(
        db,
        { id: "bigint", body: "bytea" },
        (given) => sql`
          insert into notes (id, body) select id, body from ${given} order by ord on conflict (id) do nothing returning id`,
      );
      return {
        key: ({ id }) => String(id),
        bytes: ({ size = 0 }) => size,
        one: async (trx, { id, size = 0 }) => {
          const body = new Uint8Array(size);
          const insertion = trx.insertInto("notes").values({ id, body });
          const { numInsertedOrUpdatedRows } = await insertion
            .onConflict((conflict) => conflict.column("id").doNothing())
            .executeTakeFirstOrThrow();
          return numInsertedOrUpdatedRows === 1n;
        },
        many: async (trx, rows) => {
          const bodies = rows.map(({ id, size = 0 }) => ({ id, body: new Uint8Array(size) }));
          const written = new Set((await many(trx, bodies)).map(({ id }) => id));
          return rows.map(({ id }) => written.has(id));
        },
      };
    };

    test("answers each row with its own result, and the second about one thing as the second", async () => {
      const notes = adding();
      const rows = [1, 2, 2, 3, 1, 2].map((id) => writes.writeRow(notes, { id }));
      expect(await Promise.all(rows)).toEqual([true, true, false, true, false, false]);
      expect(await ids()).toEqual([1, 2, 3]);
    });

    test("writes the rows of a batch at once where a statement is a round trip", async () => {
      const notes = adding();
      const many = vi.spyOn(notes, "many");
      await Promise.all(Array.from({ length: 64 }, (_, id) => writes.writeRow(notes, { id })));
      expect(many.mock.calls.map(([, rows]) => rows.length)).toEqual(kind === "PostgreSQL" ? [64] : []);
      expect(await ids()).toHaveLength(64);
    });

    test("writes rows before and after the jobs that they came with", async () => {
      const notes = adding();
      const before = writes.writeRow(notes, { id: 1 });
      const between = writes.write((trx) => trx.selectFrom("notes").select("id").orderBy("id").execute());
      const after = writes.writeRow(notes, { id: 2 });
      expect(await Promise.all([before, between, after])).toEqual([true, [{ id: 1 }], true]);
    });

    test("keeps rows of two kinds about one thing in their order", async () => {
      const notes = adding();
      const drop: RowKind<NoteTables, number, boolean> = {
        key: String,
        bytes: () => 0,
        one: async (trx, id) =>
          (await trx.deleteFrom("notes").where("id", "=", id).executeTakeFirstOrThrow()).numDeletedRows === 1n,
        many: async (trx, rows) => {
          const found = await trx.deleteFrom("notes").where("id", "in", rows).returning("id").execute();
          return rows.map((id) => found.some((row) => row.id === id));
        },
      };
      const results = [
        writes.writeRow(drop, 1),
        writes.writeRow(notes, { id: 1 }),
        writes.writeRow(notes, { id: 2 }),
        writes.writeRow(drop, 2),
        writes.writeRow(drop, 1),
        writes.writeRow(notes, { id: 1 }),
        writes.writeRow(notes, { id: 3 }),
      ];
      expect(await Promise.all(results)).toEqual([false, true, true, true, true, true, true]);
      expect(await ids()).toEqual([1, 3]);
    });

    test("rejects a row that fails, and writes its neighbors", async () => {
      const notes = adding();
      const failing = writes.writeRow(notes, { id: 1.5 });
      const results = await Promise.allSettled([
        writes.writeRow(notes, { id: 1 }),
        failing,
        insert(3),
        writes.writeRow(notes, { id: 2 }),
      ]);
      expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled", "fulfilled"]);
      expect(await ids()).toEqual([1, 2, 3]);
    });

    test("writes rows that are too large for one statement", async () => {
      const notes = adding();
      const rows = [1, 2, 3, 4].map((id) => writes.writeRow(notes, { id, size: 3 * 1024 * 1024 }));
      expect(await Promise.all(rows)).toEqual([true, true, true, true]);
      expect(await ids()).toEqual([1, 2, 3, 4]);
    });

    test("writes a lazy row with the next batch, and reports one that failed", async () => {
      const notes = adding();
      writes.writeRowLazily(notes, { id: 1 });
      writes.writeRowLazily(notes, { id: 1.5 });
      await insert(2);
      expect(await ids()).toEqual([1, 2]);
      expect(lazyErrors).toHaveLength(1);
    });

    test("drains on close, then refuses", async () => {
      const awaited = insert(1);
      writes.writeLazily((trx) => trx.insertInto("notes").values({ id: 2, body: new Uint8Array() }).execute());
      await writes.close();
      await awaited;
      expect(await ids()).toEqual([1, 2]);
      await expect(insert(3)).rejects.toThrow("closed");
    });
  });
}
