import { spawn } from "node:child_process";
import { once } from "node:events";
import { join } from "node:path";
import { sql } from "kysely";
import { afterEach, beforeEach, expect, test } from "vitest";
import { type Database, type Migration, openDatabase } from "./database.ts";
import { DatabaseUnreachable } from "./postgres-errors.ts";
import { type NoteTables, noteMigration } from "./testdata/notes.ts";
import { usePostgres } from "./testdata/stores.ts";
import { tagMigration } from "./testdata/tags.ts";

const server = usePostgres();
let url: string;
const opened: Database<NoteTables>[] = [];

beforeEach(async () => {
  url = await server().newDatabase();
});

afterEach(() => Promise.all(opened.splice(0).map((db) => db.destroy())));

async function open(at = url, migrations: readonly Migration[] = [noteMigration]): Promise<Database<NoteTables>> {
  const db = await openDatabase<NoteTables>({ url: at, migrations });
  opened.push(db);
  return db;
}

const ids = async (db: Database<NoteTables>) =>
  (await db.selectFrom("notes").select("id").orderBy("id").execute()).map((row) => row.id);
const insert = (db: Database<NoteTables>, id: number) =>
  db.insertInto("notes").values({ id, body: new Uint8Array() }).execute();
const show = async (db: Database<NoteTables>, setting: string) =>
  (await sql<{ value: string }>`select current_setting(${setting}) as value`.execute(db)).rows[0]?.value;

test("lets several replicas start at once on a new schema", async () => {
  for (let round = 0; round < 5; round++) {
    const at = `${url}?schema=round_${round}`;
    const replicas = await Promise.all([1, 2, 3, 4].map(() => open(at, [noteMigration, tagMigration])));
    await Promise.all(replicas.map((db, id) => insert(db, id)));
    for (const db of replicas) expect(await ids(db)).toEqual([0, 1, 2, 3]);
  }
});

test("lets several processes start at once on a new schema", async () => {
  const script = join(import.meta.dirname, "testdata", "open-and-insert.ts");
  const at = `${url}?schema=processes`;
  const children = [1, 2, 3, 4].map((id) =>
    spawn(process.execPath, [script, String(id)], { env: { ...process.env, DATABASE_URL: at }, stdio: "inherit" }),
  );
  const codes = await Promise.all(children.map(async (child) => (await once(child, "exit"))[0]));
  expect(codes).toEqual([0, 0, 0, 0]);
  expect(await ids(await open(at))).toEqual([1, 2, 3, 4]);
});

test("keeps the schemas of one database apart", async () => {
  const [one, two] = [await open(`${url}?schema=one`), await open(`${url}?schema=two`, [noteMigration, tagMigration])];
  await insert(one, 1);
  await insert(two, 2);
  expect([await ids(one), await ids(two)]).toEqual([[1], [2]]);
  await expect(open(`${url}?schema=one`)).resolves.toBeDefined();
});

test("names a database that is newer without its password", async () => {
  const { username, password, host, pathname } = new URL(url);
  await open(`${url}?schema=mine`, [noteMigration, tagMigration]);
  const refused = await open(`${url}?schema=mine`).catch(String);
  expect(refused).toContain(`the database postgres://${username}@${host}${pathname} (schema mine) is newer`);
  expect(password).not.toBe("");
  expect(refused).not.toContain(password);
});

test("bounds what a statement and a forgotten transaction may take", async () => {
  const db = await open();
  expect(await show(db, "statement_timeout")).toBe("30s");
  expect(await show(db, "idle_in_transaction_session_timeout")).toBe("10s");
  expect(await show(db, "application_name")).toBe("reeve");
});

test("keeps the driver's parameters and settings of the URL", async () => {
  const db = await open(`${url}?schema=mine&application_name=mine&options=-c%20work_mem%3D1MB`);
  expect([await show(db, "search_path"), await show(db, "application_name"), await show(db, "work_mem")]).toEqual([
    "mine",
    "mine",
    "1MB",
  ]);
});

test("refuses a bigint that is no exact number", async () => {
  const db = await open();
  await expect(sql`select 9007199254740993::bigint as big`.execute(db)).rejects.toThrow(
    "9007199254740993 is past 2^53",
  );
});

test("outlives the server, and works again when it is back", async () => {
  const db = await open();
  await insert(db, 1);
  await server().kill();
  await expect(insert(db, 2)).rejects.toThrow(DatabaseUnreachable);
  await server().restart();
  await insert(db, 3);
  expect(await ids(db)).toEqual([1, 3]);
});

test("says that the connection was lost in the middle of a transaction", async () => {
  const db = await open();
  const cut = db.transaction().execute(async (trx) => {
    await insert(trx, 1);
    await sql`select pg_terminate_backend(pg_backend_pid())`.execute(trx);
  });
  await expect(cut).rejects.toThrow(DatabaseUnreachable);
  expect(await ids(db)).toEqual([]);
});

test("outlives a connection that is lost while a transaction does something else", async () => {
  const db = await open();
  const cut = db.transaction().execute(async (trx) => {
    const { rows } = await sql<{ pid: number }>`select pg_backend_pid() as pid`.execute(trx);
    await sql`select pg_terminate_backend(${rows[0]?.pid}::int, 5000)`.execute(db);
    // The loss arrives here, where no query waits for an answer.
    await new Promise((resolve) => setTimeout(resolve, 100));
    await insert(trx, 1);
  });
  await expect(cut).rejects.toThrow(DatabaseUnreachable);
  expect(await ids(db)).toEqual([]);
});

test("waits at the start for a server that comes later", async () => {
  await server().kill();
  const opening = open();
  await server().restart();
  expect(await ids(await opening)).toEqual([]);
});

test("gives up on a server that does not come, and says where it looked", async () => {
  await server().kill();
  try {
    const { port } = server();
    const opening = openDatabase({ url, migrations: [noteMigration], startWithinMs: 600 });
    await expect(opening).rejects.toThrow(
      new RegExp(`^the database postgres://[^:]*@127.0.0.1:${port}/.* ECONNREFUSED .*; gave up after 600 ms$`),
    );
  } finally {
    await server().restart();
  }
});

test("does not wait where the server refuses the password", async () => {
  const wrong = new URL(url);
  wrong.password = "wrong";
  await expect(open(wrong.href)).rejects.toThrow(/password authentication failed/);
});
