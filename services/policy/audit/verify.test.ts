import { copyFile } from "node:fs/promises";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { Role } from "../../../gen/ts/reeve/options/v1/access_pb.ts";
import { openLogFile, rpcLogSource } from "../../../lib/audit-verify/log-source.ts";
import { type LogReport, verifyLog } from "../../../lib/audit-verify/verify.ts";
import { leafHash } from "../../../lib/merkle/hash.ts";
import { generateSigningKey } from "../../../lib/sign/keys.ts";
import { formatVkey, noteKeyOf } from "../../../lib/sign/note.ts";
import { openSqlite, type SqliteHandle } from "../../../lib/store/sqlite-handle.ts";
import { openTestLink } from "../testing/test-link.ts";
import { removeTestFolders, startTestPolicy, testFolder } from "../testing/test-policy.ts";
import { testRequest } from "../testing/test-requests.ts";

/** A real log: some calls, permitted, held, approved, ended; signed at several sizes. */
let databaseFile = "";
let verifierKey = "";
/** What an operator has kept: the newest checkpoint at the time. */
let kept = "";
let size = 0;

beforeAll(async () => {
  const policy = await startTestPolicy({ checkpointDelayMs: 3_600_000 });
  const link = openTestLink(policy.policy);
  for (let round = 0; round < 4; round++) {
    for (let i = 0; i < 5; i++) {
      const request = testRequest({ tool: "device.ping", args: { text: String(i) } });
      const answer = await link.ask({ case: "authorize", value: request });
      if (answer.case !== "decision" || answer.value.outcome.case !== "permit") throw new Error("not permitted");
      const { grantId } = answer.value.outcome.value;
      const { entries } = await policy.audit.listRecords({ callId: request.callId });
      const decided = entries[0]?.record?.event.value;
      const argsDigest = decided && "argsDigest" in decided ? decided.argsDigest : "";
      if (i === 4) continue;
      await link.ask({
        case: "recordOutcome",
        value: { callId: request.callId, state: CallState.SUCCEEDED, grantId, argsDigest, tool: "device.ping" },
      });
    }
    await policy.audit.getInclusionProof({ index: BigInt(round * 9) });
  }
  const held = testRequest({ tool: "shell.eval", args: { command: "ls" }, roles: [Role.OPERATOR] });
  await link.ask({ case: "authorize", value: held });
  const { approvals } = await policy.approvals.listApprovals({});
  const [approval] = approvals;
  await policy.approvals.approve({
    approvalId: approval?.id ?? "",
    summaryDigest: approval?.spec?.summaryDigest ?? "",
  });
  await link.ask({ case: "awaitApproval", value: { approvalId: approval?.id ?? "" } });
  await link.end();
  await policy.stop();
  databaseFile = join(policy.stateDir, "policy.db");
  verifierKey = policy.service.checkpointKey;
  const db = openSqlite(databaseFile);
  const [newest] = db.run("select note, size from checkpoints order by size desc limit 1", []).rows;
  db.close();
  kept = String(newest?.note);
  size = Number(newest?.size);
});
afterAll(removeTestFolders);

/** Verifies a copy of the log after something was done to it. */
async function verified(change: (db: SqliteHandle) => void, witness: readonly string[] = []): Promise<LogReport> {
  const copy = join(await testFolder(), "policy.db");
  await copyFile(databaseFile, copy);
  const db = openSqlite(copy);
  change(db);
  db.close();
  const source = openLogFile(copy);
  try {
    return await verifyLog(source, { verifierKey, witness });
  } finally {
    source.close();
  }
}

function flipLeaf(db: SqliteHandle, index: number): Uint8Array {
  const [row] = db.run("select leaf from records where idx = ?", [index]).rows;
  const leaf = Uint8Array.from(row?.leaf as Uint8Array);
  leaf[leaf.length - 3] = (leaf[leaf.length - 3] ?? 0) ^ 1;
  db.run("update records set leaf = ? where idx = ?", [leaf, index]);
  return leaf;
}

const cut = (from: number) => `
  delete from records where idx >= ${from};
  delete from nodes where (idx + 1) * (1 << level) > ${from};
  delete from checkpoints where size > ${from};
`;

describe("a whole log", () => {
  it("verifies, and calls without an end are listed as open", async () => {
    const report = await verified(() => {}, [kept]);
    expect(report).toMatchObject({ ok: true, size, signed: size, findings: [] });
    expect(report.checkpoints).toBeGreaterThan(2);
    expect(report.open).toHaveLength(5);
  });

  it("verifies from the file of a running service, with records that are not signed yet", async () => {
    const policy = await startTestPolicy({ checkpointDelayMs: 3_600_000 });
    const ping = () => policy.policy.authorize({ request: testRequest({ tool: "device.ping" }) });
    for (let i = 0; i < 6; i++) await ping();
    await policy.audit.getInclusionProof({ index: 3n });
    for (let i = 0; i < 6; i++) await ping();
    const source = openLogFile(join(policy.stateDir, "policy.db"));
    for (let i = 0; i < 6; i++) await ping();
    await policy.audit.getInclusionProof({ index: 18n });
    const report = await verifyLog(source, { verifierKey: policy.service.checkpointKey });
    source.close();
    await policy.stop();
    expect(report).toMatchObject({ ok: true, size: 13, signed: 7, findings: [] });
  });

  it("verifies from a running service", async () => {
    const policy = await startTestPolicy();
    await policy.policy.authorize({ request: testRequest({ tool: "device.ping" }) });
    await policy.audit.getInclusionProof({ index: 1n });
    const report = await verifyLog(rpcLogSource(policy.audit), { verifierKey: policy.service.checkpointKey });
    expect(report).toMatchObject({ ok: true, size: 2, signed: 2 });
    await policy.stop();
  });
});

describe("a changed log is found, and where", () => {
  it("names the record of which one byte was flipped, and nothing else", async () => {
    const report = await verified((db) => flipLeaf(db, 7));
    expect(report.findings).toEqual([{ kind: "flipped", index: 7, message: expect.stringContaining("record 7") }]);
  });

  it("finds a record that was changed together with its hash", async () => {
    const report = await verified((db) => {
      const leaf = flipLeaf(db, 6);
      db.run("update records set hash = ? where idx = 6", [leafHash(leaf)]);
    });
    const [first] = report.findings;
    expect(first).toMatchObject({ kind: "bad_node", index: 6, message: expect.stringContaining("records 6 to 7") });
    expect(report.findings.map((finding) => finding.kind)).toContain("fork");
  });

  it("names the record that was deleted, and nothing else", async () => {
    const report = await verified((db) => db.exec("delete from records where idx = 9"));
    expect(report.findings).toEqual([{ kind: "missing", index: 9, message: "record 9 is missing" }]);
  });

  it("names the records that were deleted in a row", async () => {
    const report = await verified((db) => db.exec("delete from records where idx between 3 and 5"));
    expect(report.findings).toMatchObject([{ kind: "missing", index: 3, message: "the records 3 to 5 are missing" }]);
  });

  it("says where a truncated log ends, and what was signed", async () => {
    const report = await verified((db) => db.exec(`delete from records where idx >= ${size - 4}`));
    expect(report.findings).toMatchObject([{ kind: "truncated", index: size - 4 }]);
    expect(report.findings[0]?.message).toContain(`ends at ${size - 4} records, but ${size} were signed`);
  });

  it("finds a truncated log whose checkpoints were deleted too, by the tree that was left", async () => {
    const change = `delete from records where idx >= 20; delete from checkpoints where size > 20`;
    const report = await verified((db) => db.exec(change));
    expect(report.findings).toMatchObject([{ kind: "truncated", index: 20 }]);
  });

  it("finds a log that was cut without a trace by the checkpoint that a witness has kept", async () => {
    expect(await verified((db) => db.exec(cut(20)))).toMatchObject({ ok: true, size: 20 });
    const report = await verified((db) => db.exec(cut(20)), [kept]);
    expect(report.findings).toMatchObject([
      { kind: "truncated", index: 20, message: expect.stringContaining("witness") },
    ]);
  });

  it("finds a log that was written anew by the checkpoint that a witness has kept", async () => {
    const other = await startTestPolicy();
    for (let i = 0; i < size; i++) await other.policy.authorize({ request: testRequest({ tool: "device.ping" }) });
    await other.stop();
    const copyKeys = openLogFile(join(other.stateDir, "policy.db"));
    const report = await verifyLog(copyKeys, { verifierKey, witness: [kept] });
    copyKeys.close();
    expect(report.findings.map((finding) => finding.kind)).toEqual(expect.arrayContaining(["bad_checkpoint", "fork"]));
  });

  it("finds a changed node of the tree", async () => {
    const report = await verified((db) => db.exec("update nodes set hash = zeroblob(32) where level = 2 and idx = 1"));
    expect(report.findings).toMatchObject([{ kind: "bad_node", index: 4, message: expect.stringContaining("4 to 7") }]);
  });

  it("finds a checkpoint of another key, and one that is filed wrongly", async () => {
    const forged = await verified((db) => db.exec("update checkpoints set note = replace(note, 'reeve/', 'other/')"));
    expect(forged.findings[0]).toMatchObject({ kind: "bad_checkpoint" });
    const moved = await verified((db) => db.exec(`update checkpoints set size = 2 where size = ${size}`));
    expect(moved.findings[0]).toMatchObject({ kind: "bad_checkpoint", message: expect.stringContaining("under 2") });
  });

  it("finds that nothing is signed", async () => {
    const report = await verified((db) => db.exec("delete from checkpoints; delete from nodes where level > 9"));
    expect(report.findings.map((finding) => finding.kind)).toEqual(["no_checkpoint"]);
  });

  it("refuses a witness checkpoint of another key", async () => {
    const report = await verified(() => {}, ["nonsense"]);
    expect(report.findings).toMatchObject([{ kind: "bad_checkpoint" }]);
  });
});

it("throws for an invalid verifier key, and finds nothing good with another key", async () => {
  const source = openLogFile(databaseFile);
  await expect(verifyLog(source, { verifierKey: "x" })).rejects.toThrow(TypeError);
  const other = formatVkey(noteKeyOf("reeve/other", generateSigningKey()));
  const report = await verifyLog(source, { verifierKey: other });
  source.close();
  expect(report.ok).toBe(false);
});
