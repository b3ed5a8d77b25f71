import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { cp, mkdir, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { databaseFile } from "../../cli/database-file.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { openSqlite } from "../../lib/store/sqlite-handle.ts";
import { type PolicyTables, policyMigrations } from "../../services/policy/storage/tables.ts";
import { type RegistryTables, registryMigrations } from "../../services/registry/tables.ts";
import { nodeEnv } from "../../testkit/node-env.ts";
import { AND, passedFile, targetFile } from "./kill-at.ts";

const folder = await mkdtemp(join(tmpdir(), "reeve-move-"));
afterAll(() => rm(folder, { recursive: true, force: true }));

const ORIGINS = ["policy/policy.db", "registry/registry.db"];

/** A data folder of before: a database for each service, with an outbox of the same name and an event in it. */
async function makeDataFolder(dataDir: string): Promise<void> {
  const policy = await openDatabase<PolicyTables>({
    path: join(dataDir, "policy/policy.db"),
    migrations: policyMigrations,
  });
  for (const idx of [0, 1, 2]) {
    const leaf = new Uint8Array([idx]);
    await policy
      .insertInto("records")
      .values({ idx, leaf, hash: leaf, call_id: `c${idx}` })
      .execute();
  }
  await policy
    .insertInto("policy_outbox")
    .values({ envelope: new Uint8Array([1]) })
    .execute();
  await policy.destroy();
  const registry = await openDatabase<RegistryTables>({
    path: join(dataDir, "registry/registry.db"),
    migrations: registryMigrations,
  });
  await registry
    .insertInto("secrets")
    .values({ name: "s", value: new Uint8Array([9]) })
    .execute();
  await registry
    .insertInto("registry_outbox")
    .values({ envelope: new Uint8Array([2]) })
    .execute();
  await registry.destroy();
  for (const service of ["policy", "registry"]) {
    const db = openSqlite(join(dataDir, service, `${service}.db`));
    for (const [table, name] of [
      ["outbox", "outbox_0001"],
      ["leases", "lease_0001"],
    ]) {
      db.exec(`alter table ${service}_${table} rename to ${table}`);
      db.exec(`update kysely_migration set name = 'v1/${name}' where name = 'v1/${service}_${table}_0001'`);
    }
    db.close();
  }
}

/** Opens it in a process of its own, which is killed at the point `target`; resolves with the points that it passed. */
async function open(dataDir: string, target?: string): Promise<string[]> {
  const points = join(folder, "points");
  await mkdir(points, { recursive: true });
  await writeFile(passedFile(points), "");
  await writeFile(targetFile(points), target ?? "");
  const args = ["--import", join(import.meta.dirname, "preload.ts"), join(import.meta.dirname, "move.ts"), dataDir];
  const child = spawn(process.execPath, args, {
    env: { ...nodeEnv(), REEVE_KILL_POINTS: points },
    stdio: ["ignore", "inherit", "inherit"],
  });
  const [code, signal] = await once(child, "exit");
  expect([code, signal]).toEqual(target === undefined ? [0, null] : [null, "SIGKILL"]);
  const passed = (await readFile(passedFile(points), "utf8")).split("\n");
  return passed.flatMap((line) => line.split(AND)[0] || []);
}

/** What the one database holds. */
function contentOf(dataDir: string) {
  const db = openSqlite(databaseFile(dataDir));
  try {
    const all = (sql: string) => db.run(sql, []).rows.map((row) => Object.values(row)[0]);
    return {
      records: all("select idx from records order by idx"),
      secrets: all("select name from secrets"),
      outboxes: [all("select hex(envelope) from policy_outbox"), all("select hex(envelope) from registry_outbox")],
      note: all("pragma user_version"),
    };
  } finally {
    db.close();
  }
}

const WHOLE = { records: [0, 1, 2], secrets: ["s"], outboxes: [["01"], ["02"]], note: [0] };

test("kill -9 at every commit and sync of the move into one database: the next start has all of both, once", {
  timeout: 600_000,
}, async () => {
  const before = join(folder, "before");
  await makeDataFolder(before);
  // Of one name, which is in the names of the points.
  const copyOf = async (name: string): Promise<string> => {
    const dataDir = join(folder, name, "data");
    await cp(before, dataDir, { recursive: true });
    return dataDir;
  };
  const unhurt = await copyOf("unhurt");
  const points = await open(unhurt);
  expect(contentOf(unhurt)).toEqual(WHOLE);
  const own = points.filter((point) => !point.startsWith("reeve.db:"));
  // The new names of two tables in each origin, the copy, the folders after the rename and after the deletion.
  expect(own.length).toBeGreaterThanOrEqual(10);
  for (const [at, point] of own.entries()) {
    const killed = await copyOf(`killed-${at}`);
    await open(killed, point);
    // One of both places holds all of it at every moment.
    const isWhole = existsSync(databaseFile(killed)) || ORIGINS.every((file) => existsSync(join(killed, file)));
    expect([point, isWhole]).toEqual([point, true]);
    await open(killed);
    expect([point, contentOf(killed)]).toEqual([point, WHOLE]);
    expect(ORIGINS.filter((file) => existsSync(join(killed, file)))).toEqual([]);
  }
});
