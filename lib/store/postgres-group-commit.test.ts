import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { eventually } from "../../testkit/eventually.ts";
import { type Database, openDatabase } from "./database.ts";
import { createGroupCommit, type GroupCommit } from "./group-commit.ts";
import { CommitUnknown, DatabaseUnreachable } from "./postgres-errors.ts";
import { type NoteTables, noteMigration } from "./testdata/notes.ts";
import { usePostgres } from "./testdata/stores.ts";
import { type TagTables, tagMigration } from "./testdata/tags.ts";

const server = usePostgres();
let url: string;
let db: Database<TagTables>;
let writes: GroupCommit<TagTables>;
const opened: Database<TagTables>[] = [];

/** As another replica would. */
async function open(): Promise<Database<TagTables>> {
  const replica = await openDatabase<TagTables>({ url, migrations: [noteMigration, tagMigration] });
  opened.push(replica);
  return replica;
}

beforeEach(async () => {
  url = await server().newDatabase();
  db = await open();
  writes = createGroupCommit(db);
});

afterEach(async () => {
  await writes.close();
  await Promise.all(opened.splice(0).map((replica) => replica.destroy()));
});

const note = (id: number, body = new Uint8Array()) => sql`insert into notes (id, body) values (${id}, ${body})`;
const insert = (id: number, on = writes) =>
  on.write((trx) =>
    note(id)
      .execute(trx)
      .then(() => id),
  );
const ids = async (on: Database<TagTables> = db) =>
  (await on.selectFrom("notes").select("id").orderBy("id").execute()).map((row) => row.id);

/** Ends the one session, of another than the asker, whose present statement begins like this. */
async function cut(on: Database<NoteTables>, statement: string): Promise<void> {
  await eventually(async () => {
    const { rows } = await sql`
      select pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and pid <> pg_backend_pid() and state = 'active' and query like ${statement}
    `.execute(on);
    expect(rows).toHaveLength(1);
  });
}

test.each(["read committed", "repeatable read", "serializable"])(
  "runs the batches of all replicas one after another under a lock, where %s is the default",
  async (isolation) => {
    await sql`alter database ${sql.id(new URL(url).pathname.slice(1))} set default_transaction_isolation = ${sql.lit(isolation)}`.execute(
      db,
    );
    const replicas = await Promise.all([1, 2, 3].map(open));
    const locked = replicas.map((replica) => createGroupCommit(replica, { lock: "counter" }));
    await note(1).execute(db);
    const size = async (trx: Database<TagTables>) =>
      (
        await trx
          .selectFrom("tags")
          .select((eb) => eb.fn.countAll<number>().as("n"))
          .executeTakeFirstOrThrow()
      ).n;
    // Reads before it writes: two at a time would write the same number.
    const count = (on: GroupCommit<TagTables>) =>
      on.write(async (trx) => {
        const name = String(await size(trx));
        await trx.insertInto("tags").values({ seq: undefined, note: 1, name }).execute();
      });
    await Promise.all(Array.from({ length: 60 }, (_, i) => count(locked[i % 3] ?? writes)));
    const rows = await db.selectFrom("tags").select("name").orderBy("seq").execute();
    expect(rows.map((row) => row.name)).toEqual(Array.from({ length: 60 }, (_, i) => String(i)));
    await Promise.all(locked.map((group) => group.close()));
  },
);

test("brings a new database up to date once where many open it at once, and repeatable read is the default", async () => {
  url = await server().newDatabase();
  const name = new URL(url).pathname.slice(1);
  await sql`alter database ${sql.id(name)} set default_transaction_isolation = 'repeatable read'`.execute(db);
  const replicas = await Promise.all([1, 2, 3, 4].map(open));
  for (const replica of replicas) expect(await ids(replica)).toEqual([]);
});

test("does not wait for the lock of another name, or of another schema", async () => {
  const other = await openDatabase<TagTables>({ url: `${url}?schema=other`, migrations: [noteMigration] });
  opened.push(other);
  const mine = createGroupCommit(db, { lock: "a" });
  const holding = Promise.withResolvers<void>();
  const begun = Promise.withResolvers<void>();
  const slow = mine.write(async () => {
    begun.resolve();
    await holding.promise;
  });
  await begun.promise;
  const [byName, bySchema] = [createGroupCommit(db, { lock: "b" }), createGroupCommit(other, { lock: "a" })];
  expect(await Promise.all([insert(1, byName), insert(2, bySchema)])).toEqual([1, 2]);
  holding.resolve();
  await slow;
  await Promise.all([mine, byName, bySchema].map((group) => group.close()));
});

test("tries again, with all jobs of the batch, where the connection was lost before COMMIT", async () => {
  const tries: string[] = [];
  const cutOff = writes.write(async (trx) => {
    tries.push("cut");
    await note(1).execute(trx);
    if (tries.length === 1) await sql`select pg_terminate_backend(pg_backend_pid())`.execute(trx);
  });
  const neighbor = writes.write((trx) => {
    tries.push("neighbor");
    return note(2).execute(trx);
  });
  await Promise.all([cutOff, neighbor]);
  expect(tries).toEqual(["cut", "cut", "neighbor"]);
  expect(await ids()).toEqual([1, 2]);
});

test("rejects all at once, and runs nothing, while the server is unavailable", async () => {
  await server().kill();
  let ran = 0;
  const jobs = Array.from({ length: 600 }, () => writes.write(async () => ran++));
  const results = await Promise.allSettled(jobs);
  expect(results.every((end) => end.status === "rejected" && end.reason instanceof DatabaseUnreachable)).toBe(true);
  expect(ran).toBe(0);
  await server().restart();
  await insert(1);
  expect(await ids()).toEqual([1]);
});

test("says that it is not known when the connection is lost during COMMIT, and tries nothing again", async () => {
  const watcher = await open();
  await sql`
    create function slow() returns trigger language plpgsql as 'begin perform pg_sleep(25); return null; end'
  `.execute(db);
  await sql`
    create constraint trigger slow after insert on notes deferrable initially deferred
    for each row when (new.id = 1) execute function slow()
  `.execute(db);
  let ran = 0;
  const job = (id: number) =>
    writes.write((trx) => {
      ran += 1;
      return note(id).execute(trx);
    });
  const results = Promise.allSettled([job(1), job(2)]);
  await cut(watcher, "commit");
  for (const end of await results) expect(end).toMatchObject({ reason: expect.any(CommitUnknown) });
  expect(ran).toBe(2);
  await job(3);
  expect(await ids()).toEqual([3]);
});

test("rejects the job that keeps a commit from going through, and no other", async () => {
  await sql`create table owed (note bigint references notes (id) deferrable initially deferred)`.execute(db);
  const breaking = writes.write((trx) => sql`insert into owed values (404)`.execute(trx));
  const results = await Promise.allSettled([insert(1), breaking, insert(2)]);
  expect(results.map((end) => end.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(await ids()).toEqual([1, 2]);
});

test("rejects a job that goes on after a statement has failed, and no other", async () => {
  const stubborn = writes.write(async (trx) => {
    await note(5).execute(trx);
    await sql`nonsense`.execute(trx).catch(() => {});
  });
  const results = await Promise.allSettled([insert(1), stubborn, insert(2)]);
  expect(results.map((end) => end.status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(await ids()).toEqual([1, 2]);
});

test("tries again where the server has ended a deadlock", async () => {
  for (const id of [1, 2]) await note(id).execute(db);
  const others = createGroupCommit(await open());
  const bothHold = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const committed = [Promise.withResolvers<void>(), Promise.withResolvers<void>()] as const;
  const runs: number[] = [];
  const touch = async (on: GroupCommit<TagTables>, me: 0 | 1) => {
    await on.write(async (trx) => {
      const lock = (id: number) => sql`update notes set body = '' where id = ${id}`.execute(trx);
      // Tried again at once it might take the first lock before the other does, which is another deadlock.
      if (runs.includes(me)) await committed[me === 0 ? 1 : 0].promise;
      runs.push(me);
      await lock(1 + me);
      bothHold[me].resolve();
      await bothHold[me === 0 ? 1 : 0].promise;
      await lock(2 - me);
    });
    committed[me].resolve();
  };
  await Promise.all([touch(writes, 0), touch(others, 1)]);
  expect(runs).toHaveLength(3);
  await others.close();
});

test("loses no acknowledged row when the server is killed", { timeout: 60_000 }, async () => {
  const acknowledged: number[] = [];
  let next = 1;
  const writeUntilLost = async () => {
    for (;;) {
      const id = next++;
      if ((await insert(id).catch(() => undefined)) === undefined) return;
      acknowledged.push(id);
    }
  };
  for (let round = 1; round <= 3; round++) {
    const writers = Array.from({ length: 8 }, writeUntilLost);
    await eventually(() => expect(acknowledged.length).toBeGreaterThan(round * 300));
    await server().kill();
    await Promise.all(writers);
    await server().restart();
  }
  const stored = new Set(await ids());
  expect(acknowledged.filter((id) => !stored.has(id))).toEqual([]);
});

test("neighbors of jobs that fail still share one commit", async () => {
  const transaction = (id: number) =>
    writes.write(async (trx) => {
      await note(id).execute(trx);
      return (await sql<{ xid: string }>`select pg_current_xact_id()::text as xid`.execute(trx)).rows[0]?.xid;
    });
  const twice = insert(1);
  const results = await Promise.allSettled([
    twice,
    transaction(2),
    insert(1),
    transaction(3),
    insert(2),
    transaction(4),
  ]);
  expect(results.map(({ status }) => status)).toEqual([
    "fulfilled",
    "fulfilled",
    "rejected",
    "fulfilled",
    "rejected",
    "fulfilled",
  ]);
  const xids = [1, 3, 5].map((n) => (results[n]?.status === "fulfilled" ? results[n].value : undefined));
  expect(new Set(xids).size).toBe(1);
  expect(await ids()).toEqual([1, 2, 3, 4]);
});

test("a job that goes on after a failed statement rejects, and harms no neighbor", async () => {
  const swallowing = writes.write(async (trx) => {
    await note(5).execute(trx);
    await sql`select 1 / 0`.execute(trx).catch(() => undefined);
  });
  const results = await Promise.allSettled([insert(1), swallowing, insert(2)]);
  expect(results.map(({ status }) => status)).toEqual(["fulfilled", "rejected", "fulfilled"]);
  expect(await ids()).toEqual([1, 2]);
});
