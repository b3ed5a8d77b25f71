import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach } from "vitest";
import { type PostgresServer, startPostgresServer } from "../../../testkit/postgres-server.ts";
import { type Database, type Migration, openDatabase } from "../database.ts";

/** The kinds of databases that `openDatabase` opens. */
export type StoreKind = "SQLite in memory" | "SQLite in a file" | "PostgreSQL";

/** All of them. */
export const STORE_KINDS: readonly StoreKind[] = ["SQLite in memory", "SQLite in a file", "PostgreSQL"];

/** Those that more than one opening, or process, can share. */
export const SHARED_STORE_KINDS: readonly StoreKind[] = ["SQLite in a file", "PostgreSQL"];

/** An empty place for a database, a new one for each test. */
export interface TestStore {
  /** Opens the place's database, which is closed after the test unless the test has done so. */
  open<T>(migrations: readonly Migration[]): Promise<Database<T>>;
}

/** Gives each test of the surrounding `describe` an empty place. */
export function useStore(kind: StoreKind): TestStore {
  const place = kind === "PostgreSQL" ? usePostgresPlace() : useSqlitePlace(kind);
  const opened: Database<never>[] = [];
  afterEach(() => Promise.all(opened.splice(0).map((db) => db.destroy())));
  return {
    async open<T>(migrations: readonly Migration[]) {
      const db = await openDatabase<T>({ ...place(), migrations });
      opened.push(db as unknown as Database<never>);
      return db;
    },
  };
}

/** A server for all tests of the surrounding `describe` or file. */
export function usePostgres(): () => PostgresServer {
  let server: PostgresServer | undefined;
  beforeAll(async () => {
    server = await startPostgresServer();
  }, 120_000);
  afterAll(() => server?.close());
  return () => {
    if (server === undefined) throw new Error("the server is not started yet");
    return server;
  };
}

function usePostgresPlace(): () => { url: string } {
  const server = usePostgres();
  let url = "";
  beforeEach(async () => {
    url = await server().newDatabase();
  });
  return () => ({ url });
}

function useSqlitePlace(kind: StoreKind): () => { path: string } {
  if (kind === "SQLite in memory") return () => ({ path: ":memory:" });
  let folder = "";
  beforeEach(() => {
    folder = mkdtempSync(join(tmpdir(), "reeve-store-"));
  });
  afterEach(() => rmSync(folder, { recursive: true }));
  return () => ({ path: join(folder, "state.db") });
}
