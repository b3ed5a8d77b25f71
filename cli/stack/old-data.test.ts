import { mkdtemp, readdir, realpath, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, test } from "vitest";
import { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { createLogger } from "../../lib/log/log.ts";
import { openSqlite } from "../../lib/store/sqlite-handle.ts";
import { describeError, errorText } from "../errors/describe-error.ts";
import { startStack } from "./stack.ts";

const folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-old-data-")));
afterAll(() => rm(folder, { recursive: true, force: true }));

const dataDir = join(folder, "data");

const start = () =>
  startStack({
    dataDir,
    ports: { registry: 0, policy: 0, device: 0 },
    deviceName: "box",
    mode: Mode.ALL,
    readRoots: [],
    writeRoots: [],
    env: process.env,
    logger: createLogger({ service: "test", level: "silent" }),
  });

/** Renames the migrations of a database, as an earlier version would have named them, or back. */
function rename(path: string, expression: string): void {
  const db = openSqlite(path);
  db.exec(`update kysely_migration set name = ${expression}`);
  db.close();
}

test("data of an earlier version is refused by whichever service finds it, with what to do", async () => {
  const stack = await start();
  await stack.close();
  const files = (await readdir(dataDir, { recursive: true })).filter((name) => name.endsWith(".db"));
  expect(files.length).toBeGreaterThanOrEqual(2);
  for (const file of files) {
    const path = join(dataDir, file);
    rename(path, "replace(name, 'v1/', '')");
    const refused = await start().catch((e: unknown) => e);
    const text = errorText(describeError(refused));
    expect(text).toContain(`reeve: the database ${path} was written by an earlier, incompatible version of Reeve`);
    expect(text).toContain("or choose another one; nothing in it was changed");
    expect(text).toContain("REEVE_DATA_DIR");
    rename(path, "'v1/' || name");
  }
  const again = await start();
  await again.close();
});
