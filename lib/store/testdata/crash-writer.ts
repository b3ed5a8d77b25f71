import { writeSync } from "node:fs";
import { openDatabase } from "../database.ts";
import { createGroupCommit } from "../group-commit.ts";
import { prepared } from "../prepared.ts";
import { type NoteTables, noteMigration } from "./notes.ts";

// Writes rows with several writers until it is killed, and names each row on stdout once its write has resolved.
const [path = "", firstId = "0"] = process.argv.slice(2);
const db = await openDatabase<NoteTables>({ path, migrations: [noteMigration] });
const writes = createGroupCommit(db);
const insert = prepared((p: { id: number; body: Uint8Array }) =>
  db.insertInto("notes").values({ id: p.id, body: p.body }),
);
let next = Number(firstId);

async function writeForever(): Promise<void> {
  for (;;) {
    const id = next++;
    await writes.write((trx) => insert.run(trx, { id, body: new Uint8Array(100) }));
    writeSync(1, `${id}\n`);
  }
}

await Promise.all(Array.from({ length: 8 }, writeForever));
