import { afterAll, afterEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail, reasonOf } from "../../../lib/fault/fault.ts";
import { leafHash } from "../../../lib/merkle/hash.ts";
import { verifyConsistency, verifyInclusion } from "../../../lib/merkle/verify.ts";
import { verifyCheckpoint } from "../../../lib/sign/checkpoint.ts";
import { type NoteKey, parseVkey } from "../../../lib/sign/note.ts";
import { verifyTlogProof } from "../../../lib/sign/tlog-proof.ts";
import { eventually } from "../../../testkit/eventually.ts";
import { runSql } from "../testing/run-sql.ts";
import { removeTestFolders, startTestPolicy, type TestPolicy } from "../testing/test-policy.ts";
import { testRequest } from "../testing/test-requests.ts";

const running: TestPolicy[] = [];

/** Without checkpoints of its own accord, so that a test decides when one is signed. */
async function start(stateDir?: string): Promise<TestPolicy> {
  const policy = await startTestPolicy({ checkpointDelayMs: 3_600_000, ...(stateDir && { stateDir }) });
  running.push(policy);
  return policy;
}

async function ping(policy: TestPolicy, times: number): Promise<void> {
  await Promise.all(
    Array.from({ length: times }, () => policy.policy.authorize({ request: testRequest({ tool: "device.ping" }) })),
  );
}

function keyOf(policy: TestPolicy): NoteKey {
  const key = parseVkey(policy.service.checkpointKey);
  if (!key) throw new Error("no verifier key");
  return key;
}

afterEach(async () => {
  for (const policy of running.splice(0)) await policy.stop();
});
afterAll(removeTestFolders);

describe("records", () => {
  it("are listed from the oldest, page by page, without a gap", async () => {
    const policy = await start();
    await ping(policy, 9);
    const indexes: number[] = [];
    let pageToken = "";
    do {
      const page = await policy.audit.listRecords({ pageSize: 4, pageToken });
      indexes.push(...page.entries.map((entry) => Number(entry.index)));
      pageToken = page.nextPageToken;
    } while (pageToken !== "");
    expect(indexes).toEqual(Array.from({ length: 10 }, (_, i) => i));
  });

  it("begin with the policy that was loaded", async () => {
    const policy = await start();
    const { entries } = await policy.audit.listRecords({});
    expect(entries[0]?.record?.event).toMatchObject({ case: "policyLoaded", value: { accepted: true, problem: "" } });
  });

  it("refuse an invalid page token", async () => {
    const policy = await start();
    const error = await policy.audit.listRecords({ pageToken: "-1" }).catch((e: unknown) => e);
    expect(reasonOf(error)).toBe(ErrorReason.INVALID_INPUT);
  });
});

describe("checkpoints", () => {
  it("are signed by themselves a moment after a record", async () => {
    const policy = await startTestPolicy({ checkpointDelayMs: 1 });
    running.push(policy);
    await ping(policy, 3);
    await eventually(async () => expect((await policy.audit.getCheckpoint({})).checkpoint?.size).toBe(4n));
    const { checkpoint, verifierKey } = await policy.audit.getCheckpoint({});
    expect(verifierKey).toBe(policy.service.checkpointKey);
    expect(verifyCheckpoint(checkpoint?.note ?? "", keyOf(policy))).toMatchObject({
      ok: true,
      checkpoint: { size: 4 },
    });
    expect(checkpoint?.origin).toBe(policy.service.origin);
  });

  it("cover everything when the service closes, and the log goes on after a restart", async () => {
    const before = await start();
    await ping(before, 5);
    await before.stop();
    const after = await start(before.stateDir);
    expect(Number((await after.audit.getCheckpoint({})).checkpoint?.size)).toBeGreaterThanOrEqual(6);
    await ping(after, 1);
    const proof = await after.audit.getInclusionProof({ index: 7n });
    expect(Number(proof.proof?.size)).toBe(8);
  });
});

describe("inclusion proofs", () => {
  it("verify for every record, each alone and offline", async () => {
    const policy = await start();
    await ping(policy, 12);
    for (let index = 0; index < 13; index++) {
      const { proof, entry, text } = await policy.audit.getInclusionProof({ index: BigInt(index) });
      const hash = leafHash(entry?.leaf ?? new Uint8Array());
      const root = proof?.checkpoint?.root ?? new Uint8Array();
      expect(verifyInclusion(hash, index, Number(proof?.size), proof?.path ?? [], root)).toBe(true);
      expect(verifyTlogProof(text, hash, keyOf(policy))).toMatchObject({ ok: true, index });
    }
  });

  it("are refused for a record that the log does not hold", async () => {
    const policy = await start();
    const error = await policy.audit.getInclusionProof({ index: 1000n }).catch((e: unknown) => e);
    expect(faultDetail(error)).toMatchObject({ reason: ErrorReason.NOT_FOUND, metadata: { resource: "records/1000" } });
  });
});

describe("consistency proofs", () => {
  it("verify between an earlier checkpoint and the newest", async () => {
    const policy = await start();
    await ping(policy, 4);
    await policy.audit.getInclusionProof({ index: 4n });
    const { checkpoint: old } = await policy.audit.getCheckpoint({});
    await ping(policy, 6);
    await policy.audit.getInclusionProof({ index: 10n });
    const { path, checkpoint } = await policy.audit.getConsistencyProof({ first: old?.size ?? 0n });
    expect([old?.size, checkpoint?.size]).toEqual([5n, 11n]);
    const [oldRoot, root] = [old?.root ?? new Uint8Array(), checkpoint?.root ?? new Uint8Array()];
    expect(verifyConsistency(5, 11, path, oldRoot, root)).toBe(true);
    expect(verifyConsistency(5, 11, path, root, oldRoot)).toBe(false);
  });

  it("are refused backwards, and beyond the log", async () => {
    const policy = await start();
    const backwards = await policy.audit.getConsistencyProof({ first: 9n, second: 1n }).catch((e: unknown) => e);
    expect(reasonOf(backwards)).toBe(ErrorReason.INVALID_INPUT);
    const beyond = await policy.audit.getConsistencyProof({ first: 1n, second: 999n }).catch((e: unknown) => e);
    expect(reasonOf(beyond)).toBe(ErrorReason.NOT_FOUND);
  });
});

describe("at the start", () => {
  async function tampered(change: string): Promise<unknown> {
    const policy = await start();
    await ping(policy, 8);
    await policy.stop();
    await runSql(policy, change);
    return start(policy.stateDir).catch((e: unknown) => e);
  }

  it("a log that is shorter than what was signed keeps the service from starting, and it says what to do", async () => {
    const error = await tampered("delete from records where idx >= 6");
    expect(reasonOf(error)).toBe(ErrorReason.TAMPERED);
    expect(String(error)).toContain("it ends at 6 records, but 9 were signed");
    expect(String(error)).toContain("reeve audit verify");
  });

  it("a tree that does not lead to the signed root keeps it from starting", async () => {
    const error = await tampered("update records set hash = leaf where idx = 8");
    expect(reasonOf(error)).toBe(ErrorReason.TAMPERED);
  });

  it("a checkpoint that another key signed keeps it from starting", async () => {
    const error = await tampered("update checkpoints set note = replace(note, 'reeve/', 'other/')");
    expect(reasonOf(error)).toBe(ErrorReason.TAMPERED);
  });
});

it("a transaction that is rolled back leaves no gap and no record", async () => {
  const policy = await start();
  await ping(policy, 2);
  const request = testRequest({ tool: "device.ping", callId: "twice" });
  // The same call at once: one of the two has appended its record when it finds the other, and is rolled back.
  await Promise.all([policy.policy.authorize({ request }), policy.policy.authorize({ request }), ping(policy, 3)]);
  const { entries } = await policy.audit.listRecords({});
  expect(entries.map((entry) => Number(entry.index))).toEqual(Array.from({ length: 7 }, (_, i) => i));
});
