import { createSecretKey } from "node:crypto";
import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, toBinary } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, expect, test } from "vitest";
import { CallSchema, CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorDetailSchema, ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { createOutbox } from "../../../lib/events/outbox.ts";
import { SealError } from "../../../lib/identity/seal.ts";
import { sealerWith } from "../../../lib/identity/sealer.ts";
import { canonicalJson } from "../../../lib/sign/canonical.ts";
import { type Database, openDatabase } from "../../../lib/store/database.ts";
import { createGroupCommit, type GroupCommit } from "../../../lib/store/group-commit.ts";
import { checkSealingKey } from "../sealing.ts";
import { type RegistryTables, registryMigrations } from "../tables.ts";
import { createBodies } from "./bodies.ts";
import { sealOldCalls } from "./seal-old.ts";
import { createCallStore } from "./store.ts";

const bodies = createBodies(sealerWith(createSecretKey(Buffer.alloc(32, 7))));
const END_MS = Date.parse("2026-11-01T12:00:00Z");
const MARK = "written-before";

let folder: string;
let db: Database<RegistryTables>;
let writes: GroupCommit<RegistryTables>;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-old-"));
  db = await openDatabase<RegistryTables>({ path: join(folder, "registry.db"), migrations: registryMigrations });
  writes = createGroupCommit(db);
});
afterEach(async () => {
  await writes.close();
  await db.destroy();
  await rm(folder, { recursive: true });
});

/** A row as a version wrote it that did not seal. */
async function insertOld(id: string, tool: string, args: object, ended: boolean): Promise<void> {
  const call = create(CallSchema, {
    id,
    tool,
    state: ended ? CallState.FAILED : CallState.HELD,
    purpose: `${MARK} purpose`,
    ...(ended && {
      endTime: timestampFromMs(END_MS),
      error: create(ErrorDetailSchema, { reason: ErrorReason.TOOL_FAILED, metadata: { text: `${MARK} metadata` } }),
      errorMessage: `${MARK} message`,
    }),
  });
  const row = {
    id,
    device_id: "dev-1",
    tool,
    principal_id: "p",
    state: call.state,
    ended: ended ? 1 : 0,
    call: toBinary(CallSchema, call),
    args: Buffer.from(canonicalJson(args as never)),
    output: ended ? JSON.stringify({ stdout: `${MARK} output` }) : null,
  };
  await db.insertInto("calls").values(row).execute();
}

async function filesWith(text: string): Promise<string[]> {
  const found: string[] = [];
  for (const name of await readdir(folder)) if ((await readFile(join(folder, name))).includes(text)) found.push(name);
  return found;
}

test("calls of a version that did not seal are sealed, and lose their secrets where they have ended", async () => {
  const args = { argv: [`${MARK} argument`], env: { KEY: `${MARK} secret` } };
  await insertOld("ended", "exec", args, true);
  await insertOld("open", "exec", args, false);
  await insertOld("announced", "printer.print", { text: `${MARK} text` }, true);
  for (let at = 0; at < 250; at++) await insertOld(`more-${at}`, "fs.read", { path: `/${MARK}/${at}` }, true);
  expect(await filesWith(MARK)).not.toEqual([]);
  const store = createCallStore({ db, writes, outbox: createOutbox(db), bodies });
  expect((await store.get("ended"))?.call).toMatchObject({
    purpose: `${MARK} purpose`,
    errorMessage: `${MARK} message`,
  });

  expect(await sealOldCalls({ db, writes, bodies, now: Date.now })).toBe(253);
  expect(await filesWith(MARK)).toEqual([]);
  const ended = await store.get("ended");
  expect(ended?.args.length).toBe(0);
  expect(ended?.call).toMatchObject({
    purpose: `${MARK} purpose`,
    errorMessage: `${MARK} message`,
    error: { reason: ErrorReason.TOOL_FAILED, metadata: { text: `${MARK} metadata` } },
    output: { stdout: `${MARK} output` },
  });
  const shown = { argv: [`${MARK} argument`], env: { KEY: "[redacted]" } };
  expect(await store.shownArguments("ended")).toEqual(shown);
  expect(await store.shownArguments("open")).toEqual(shown);
  expect(Buffer.from((await store.get("open"))?.args ?? "").toString()).toBe(canonicalJson(args));
  expect(await store.shownArguments("announced")).toEqual({
    note: "[not shown: the tool's schema is not known here]",
  });
  expect(await store.shownArguments("more-249")).toEqual({ path: `/${MARK}/249` });
  const due = await db.selectFrom("calls").select("kept_from_ms").where("id", "=", "ended").executeTakeFirst();
  expect(due?.kept_from_ms).toBe(END_MS);
  expect(await sealOldCalls({ db, writes, bodies, now: Date.now })).toBe(0);
});

test("a list is short, ends early where arguments are large, and goes on where it ended", async () => {
  const store = createCallStore({ db, writes, outbox: createOutbox(db), bodies });
  const text = `begin ${"x".repeat(2_900_000)} end`;
  for (const id of ["1", "2", "3", "4"]) {
    await store.insert(create(CallSchema, { id, tool: "fs.write" }), { args: Buffer.from(canonicalJson({ text })) });
  }
  const first = await store.list({ limit: 10 });
  expect(first.more).toBe(true);
  expect(first.calls.map(({ call }) => call.id)).toEqual(["4", "3"]);
  const [{ call, row } = { call: undefined, row: 0 }] = first.calls.slice(-1);
  expect(call?.arguments?.text).toMatch(/^begin x+ \[cut: \d+ of 2900010 characters are not shown here; .*\] x+ end$/);
  expect(JSON.stringify(first.calls.map((one) => one.call.arguments)).length).toBeLessThan(5000);
  const next = await store.list({ limit: 10, before: row });
  expect(next).toMatchObject({ more: false, calls: [{ call: { id: "2" } }, { call: { id: "1" } }] });
});

test("what was sealed for one call does not open as another's, and one bad row hides no others", async () => {
  const store = createCallStore({ db, writes, outbox: createOutbox(db), bodies });
  for (const id of ["1", "2"]) await store.insert(create(CallSchema, { id }), { args: Buffer.from(`{"of":"${id}"}`) });
  const { args } = await db.selectFrom("calls").select("args").where("id", "=", "1").executeTakeFirstOrThrow();
  await db.updateTable("calls").set({ args }).where("id", "=", "2").execute();
  await expect(store.get("2")).rejects.toThrow(SealError);
  const { calls } = await store.list({ limit: 10 });
  expect(calls.map(({ call }) => call.arguments)).toEqual([{ note: "[cannot be read]" }, { of: "1" }]);
});

test("another key is refused before anything is written with it", async () => {
  const key = (byte: number) => sealerWith(createSecretKey(Buffer.alloc(32, byte)));
  await checkSealingKey(db, key(7));
  await checkSealingKey(db, key(7));
  await expect(checkSealingKey(db, key(8))).rejects.toThrow(/sealing-check was sealed with the key [0-9a-f]{16}/);
});
