import { copyFile, mkdtemp, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { basename, join } from "node:path";
import { Client } from "pg";
import { openSqlite } from "../../lib/store/sqlite-handle.ts";

/** What is on disk about a call: its row, the decision about it, and the device's note that it started. */
export interface OnDisk {
  call: boolean;
  decision: boolean;
  started: boolean;
}

/** Asks a killed process's databases about a call, as they are before anything recovers them. */
export async function onDisk(id: string, dataDir: string, databaseUrl?: string): Promise<OnDisk> {
  const started = await isInFile(join(dataDir, "device", "ledger.db"), "executions", "call_id", id);
  if (databaseUrl === undefined) {
    return {
      call: await isInFile(join(dataDir, "reeve.db"), "calls", "id", id),
      decision: await isInFile(join(dataDir, "reeve.db"), "decisions", "call_id", id),
      started,
    };
  }
  const client = new Client({ connectionString: databaseUrl });
  await client.connect();
  try {
    const { rows } = await client.query<{ call: boolean; decision: boolean }>(
      `select exists (select from registry.calls where id = $1) as call,
        exists (select from policy.decisions where call_id = $1) as decision`,
      [id],
    );
    return { call: rows[0]?.call === true, decision: rows[0]?.decision === true, started };
  } finally {
    await client.end();
  }
}

/** Looks into a copy: opening the database itself would recover it. */
async function isInFile(path: string, table: string, column: string, id: string): Promise<boolean> {
  const folder = await mkdtemp(join(tmpdir(), "reeve-copy-"));
  const copy = join(folder, basename(path));
  await copyFile(path, copy);
  await copyFile(`${path}-wal`, `${copy}-wal`).catch(() => undefined);
  const db = openSqlite(copy);
  try {
    return db.run(`select 1 from ${table} where ${column} = ?`, [id]).rows.length > 0;
  } finally {
    db.close();
    await rm(folder, { recursive: true });
  }
}
