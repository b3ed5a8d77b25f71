import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { openDatabase } from "../../lib/store/database.ts";
import { createGroupCommit } from "../../lib/store/group-commit.ts";
import { type NoteTables, noteMigration } from "../../lib/store/testdata/notes.ts";
import { startPostgresServer } from "../../testkit/postgres-server.ts";
import { startPlane } from "../plane/plane.ts";
import { planeUsage } from "../plane/usage.ts";
import { governedCalls, NOOP } from "./governed.ts";
import { callerOf } from "./paths.ts";
import type { Subject } from "./subject.ts";

/** Governed calls on a control plane of one registry with either database, and bare writes through the group commit. */
export async function storeSubjects(parts: AsyncDisposableStack): Promise<Subject[]> {
  const sqlite = await governedOn("sqlite", parts);
  const postgres = await governedOn("postgres", parts);
  const folder = mkdtempSync(join(tmpdir(), "reeve-bench-store-"));
  parts.defer(() => rmSync(folder, { recursive: true }));
  const server = parts.adopt(await startPostgresServer({ fsync: true }), (one) => one.close());
  return [
    { name: "SQLite, unary", call: sqlite.unary, usage: sqlite.usage },
    { name: "PostgreSQL, unary", against: ["SQLite, unary"], call: postgres.unary, usage: postgres.usage },
    { name: "SQLite, stream", call: sqlite.streamed, usage: sqlite.usage },
    { name: "PostgreSQL, stream", against: ["SQLite, stream"], call: postgres.streamed, usage: postgres.usage },
    { name: "SQLite, write", call: await writesTo({ path: join(folder, "bench.db") }, parts) },
    {
      name: "PostgreSQL, write",
      against: ["SQLite, write"],
      call: await writesTo({ url: await server.newDatabase() }, parts),
    },
  ];
}

async function governedOn(database: "sqlite" | "postgres", parts: AsyncDisposableStack) {
  const plane = parts.adopt(await startPlane({ database, devices: { only: { link: 0 } } }), (one) => one.close());
  const { unary, streamed } = governedCalls(callerOf(plane, 0));
  const request = { ...NOOP, device: "only" };
  return { unary: unary(request), streamed: streamed(request), usage: () => planeUsage(plane) };
}

/** One row, on disk when it resolves; those of a turn share a commit. */
async function writesTo(
  place: { path: string } | { url: string },
  parts: AsyncDisposableStack,
): Promise<() => Promise<void>> {
  const db = await openDatabase<NoteTables>({ ...place, migrations: [noteMigration] });
  parts.defer(() => db.destroy());
  const writes = createGroupCommit(db);
  parts.defer(() => writes.close());
  let id = 0;
  const body = new Uint8Array(200);
  return async () => {
    await writes.write(async (trx) => {
      await trx.insertInto("notes").values({ id: ++id, body }).execute();
    });
  };
}
