import { beforeEach, describe, expect, test } from "vitest";
import type { Database } from "../database.ts";
import { createGroupCommit, type GroupCommit } from "../group-commit.ts";
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
