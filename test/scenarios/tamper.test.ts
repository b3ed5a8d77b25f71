import { copyFile, cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { generateSigningKey } from "../../lib/sign/keys.ts";
import { formatVkey, noteKeyOf, parseVkey } from "../../lib/sign/note.ts";
import { openSqlite, type SqliteHandle } from "../../lib/store/sqlite-handle.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { type CliResult, runReeve, runReeveProcess } from "../../testkit/cli.ts";
import { callerOf } from "../../testkit/clients.ts";
import { startControlPlane } from "../../testkit/control-plane.ts";
import { eventually } from "../../testkit/eventually.ts";

/** A log that real calls have left, in the state folder of a policy service that has ended. */
let folder: string;
let stateDir: string;
let key: string;
/** How many records it holds, and how many were under an earlier checkpoint. */
let size: number;
let earlier: number;
/** The newest checkpoint, as an outsider has kept it. */
let witness: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-tamper-"));
  const plane = await startControlPlane();
  const [operator, agent] = [callerOf(plane, plane.tokens.operator), callerOf(plane, plane.tokens.agent)];
  const records = async () => (await operator.audit.listRecords({ pageSize: 1000 })).entries.length;
  for (let n = 0; n < 4; n++) await operator.registry.callTool({ tool: "device.ping", params: { text: `call ${n}` } });
  const held = agent.registry.callTool({
    tool: "exec",
    params: { argv: ["touch", join(plane.work, "a")] },
    callId: "held",
  });
  await approveCall(operator, "held");
  await held;
  // One for the policy, two for each call, and two more for the one that was held.
  await eventually(async () => expect(await records()).toBe(13));
  const { proof } = await operator.audit.getInclusionProof({ index: 12n });
  earlier = Number(proof?.checkpoint?.size);
  await agent.registry.callTool({ tool: "fs.read", params: { path: "/etc/shadow" } });
  await operator.registry.callTool({ tool: "exec", params: { argv: ["uname"] } });
  await eventually(async () => expect(await records()).toBe(16));
  const newest = await operator.audit.getInclusionProof({ index: 15n });
  witness = join(folder, "witness.txt");
  await writeFile(witness, newest.proof?.checkpoint?.note ?? "");
  size = await records();
  for (const part of Object.values(plane.processes)) await part.stop();
  stateDir = join(folder, "policy");
  await cp(join(plane.folder, "policy-0"), stateDir, { recursive: true });
  key = join(folder, "key.vkey");
  await copyFile(join(stateDir, "checkpoint.vkey"), key);
  await plane.close();
});
afterAll(() => rm(folder, { recursive: true }));

test("an untouched log verifies, also against the witness", async () => {
  const untouched = await tampered(() => undefined);
  expect(await verify(untouched, "--witness", witness)).toMatchObject({
    code: 0,
    report: { ok: true, size, findings: [] },
  });
  const { stdout } = await reeve("audit", "verify", "--db", untouched, "--key", key);
  expect(stdout).toContain("The audit log verifies.");
  expect([earlier, size]).toEqual([13, 16]);
});

test("a flipped byte is found, with the record's index", async () => {
  const db = await tampered((log) => flipByte(log, 5));
  expect((await verify(db)).report.findings).toMatchObject([{ kind: "flipped", index: 5 }]);
  const { code, stdout } = await reeve("audit", "verify", "--db", db, "--key", key);
  expect([code, stdout]).toEqual([10, expect.stringContaining("record 5 has been changed")]);
});

test("a flipped byte in any record is found, with that record's index", async () => {
  for (const index of [0, 12, 15]) {
    const db = await tampered((log) => flipByte(log, index));
    expect(await verify(db)).toMatchObject({ code: 10, report: { findings: [{ kind: "flipped", index }] } });
  }
});

test("a changed record with a hash to fit does not lead to the signed root", async () => {
  const db = await tampered((log) => {
    const [other] = log.run("select leaf, hash from records where idx = 3", []).rows;
    log.run("update records set leaf = ?, hash = ? where idx = 5", [other?.leaf, other?.hash]);
  });
  const { code, report } = await verify(db);
  expect(code).toBe(10);
  expect(report.findings.map(({ kind }) => kind)).toEqual(expect.arrayContaining(["bad_node", "fork"]));
});

test("a deleted record is found, with its index", async () => {
  const db = await tampered((log) => log.exec("delete from records where idx = 7"));
  const { code, report } = await verify(db);
  expect(code).toBe(10);
  expect(report.findings).toMatchObject([{ kind: "missing", index: 7, message: "record 7 is missing" }]);
});

test("a gap that was closed by moving the records up is found", async () => {
  const db = await tampered((log) => {
    log.exec("delete from records where idx = 7");
    for (let index = 8; index < size; index++) log.run("update records set idx = ? where idx = ?", [index - 1, index]);
  });
  const { code, report } = await verify(db);
  expect(code).toBe(10);
  expect(report.findings).toEqual(expect.arrayContaining([expect.objectContaining({ kind: "bad_node", index: 6 })]));
});

test("a cut tail is found, with the index of the first record that is gone", async () => {
  const db = await tampered((log) => log.exec("delete from records where idx >= 12"));
  const { code, report } = await verify(db);
  expect(code).toBe(10);
  expect(report.findings).toMatchObject([{ kind: "truncated", index: 12 }]);
  expect(report.findings[0]?.message).toContain("16 were signed");
});

test("a tail that was cut with its checkpoints and its tree is found by the witness alone", async () => {
  const db = await tampered((log) => {
    log.run("delete from records where idx >= ?", [earlier]);
    log.run("delete from checkpoints where size > ?", [earlier]);
    log.run("delete from nodes where (idx + 1) * (1 << level) > ?", [earlier]);
  });
  expect(await verify(db)).toMatchObject({ code: 0, report: { ok: true, size: earlier } });
  const { code, report } = await verify(db, "--witness", witness);
  expect(code).toBe(10);
  expect(report.findings).toMatchObject([{ kind: "truncated", index: earlier }]);
  expect(report.findings[0]?.message).toContain("as the witness knows");
});

test("a tail that was cut with its checkpoints, but not its tree, is found without a witness", async () => {
  const db = await tampered((log) => {
    log.run("delete from records where idx >= ?", [earlier]);
    log.run("delete from checkpoints where size > ?", [earlier]);
  });
  expect(await verify(db)).toMatchObject({ code: 10, report: { findings: [{ kind: "truncated", index: earlier }] } });
});

test("a checkpoint that the log's key did not sign is found", async () => {
  const db = await tampered((log) => {
    const [row] = log.run("select note from checkpoints where size = ?", [size]).rows;
    const note = String(row?.note).replace(/\n16\n/, "\n17\n");
    log.run("update checkpoints set note = ? where size = ?", [note, size]);
  });
  const { code, report } = await verify(db);
  expect(code).toBe(10);
  expect(report.findings).toMatchObject([{ kind: "bad_checkpoint", message: expect.stringContaining("16") as string }]);
});

test("a log that another key has signed does not pass for this one", async () => {
  const { name } = parseVkey((await readFile(key, "utf8")).trim()) ?? {};
  const other = formatVkey(noteKeyOf(name ?? "", generateSigningKey()));
  const { code, report } = await verify(await tampered(() => undefined), "--key", other);
  expect(code).toBe(10);
  expect(new Set(report.findings.map(({ kind }) => kind))).toEqual(new Set(["bad_checkpoint", "no_checkpoint"]));
});

test("bytes that are no database are an answer too", async () => {
  const path = join(await mkdtemp(join(folder, "copy-")), "policy.db");
  await writeFile(path, "not a database");
  const { code, stderr, stdout } = await reeve("audit", "verify", "--db", path, "--key", key);
  expect(code, stdout).toBe(10);
  expect(stderr + stdout).toContain("cannot be read");
});

test("policy does not start on a log that was cut", async () => {
  const db = await tampered((log) => log.exec("delete from records where idx >= 12"));
  const copy = join(db, "..");
  await writeFile(join(copy, "tokens.json"), '{"version":1,"tokens":[]}', { mode: 0o600 });
  const { code, stderr } = await runReeveProcess(["serve", "policy"], {
    HOME: folder,
    REEVE_POLICY_PORT: "0",
    REEVE_POLICY_STATE_DIR: copy,
    REEVE_TOKENS_FILE: join(copy, "tokens.json"),
  });
  expect(code, stderr).toBe(10);
  expect(stderr).toContain("reeve: ");
});

/** A copy of the log that was changed: the path of its database. */
async function tampered(work: (log: SqliteHandle) => void): Promise<string> {
  const copy = await mkdtemp(join(folder, "copy-"));
  await cp(stateDir, copy, { recursive: true });
  const path = join(copy, "policy.db");
  const log = openSqlite(path);
  work(log);
  log.close();
  return path;
}

function flipByte(log: SqliteHandle, index: number): void {
  const [row] = log.run("select leaf from records where idx = ?", [index]).rows;
  const leaf = Uint8Array.from(row?.leaf as Uint8Array);
  const middle = leaf.length >> 1;
  leaf[middle] = (leaf[middle] ?? 0) ^ 0x01;
  log.run("update records set leaf = ? where idx = ?", [leaf, index]);
}

interface Report {
  ok: boolean;
  size: number;
  findings: { kind: string; index?: number; message: string }[];
}

/** What `reeve audit verify` says of a database, offline. */
async function verify(db: string, ...more: string[]): Promise<{ code: number | null; report: Report }> {
  const withKey = more.includes("--key") ? more : [...more, "--key", key];
  const { code, stdout, stderr } = await reeve("audit", "verify", "--db", db, "--json", ...withKey);
  expect(stderr).toBe("");
  return { code, report: JSON.parse(stdout) as Report };
}

function reeve(...args: string[]): Promise<CliResult> {
  return runReeve(args, { HOME: folder });
}
