import { writeFile } from "node:fs/promises";
import { join } from "node:path";
import { toBinary } from "@bufbuild/protobuf";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { type Approval, ApprovalState } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { DecisionSchema } from "../../gen/ts/reeve/policy/v1/decision_pb.ts";
import { reasonOf } from "../../lib/fault/fault.ts";
import { eventually } from "../../testkit/eventually.ts";
import { type PostgresServer, startPostgresServer } from "../../testkit/postgres-server.ts";
import { runSql } from "./testing/run-sql.ts";
import { openTestLink } from "./testing/test-link.ts";
import { removeTestFolders, startTestPolicy, type TestPolicy, testFolder } from "./testing/test-policy.ts";
import { startReplica, verifyDatabase } from "./testing/test-replicas.ts";
import { testRequest } from "./testing/test-requests.ts";

let server: PostgresServer;
const running: TestPolicy[] = [];

beforeAll(async () => {
  server = await startPostgresServer();
});
afterEach(async () => {
  for (const policy of running.splice(0)) await policy.stop();
});
afterAll(async () => {
  await server.close();
  await removeTestFolders();
});

async function startTwo(options: Parameters<typeof startTestPolicy>[0] = {}): Promise<[TestPolicy, TestPolicy]> {
  const first = await startTestPolicy({ ...options, databaseUrl: await server.newDatabase() });
  running.push(first);
  const second = await startReplica(first, options);
  running.push(second);
  return [first, second];
}

async function hold(policy: TestPolicy): Promise<Approval> {
  const request = testRequest({ tool: "shell.eval", args: { command: "ls" } });
  const { decision } = await policy.policy.authorize({ request });
  if (decision?.outcome.case !== "hold") throw new Error("not held");
  const { approval } = await policy.approvals.getApproval({ approvalId: decision.outcome.value.approvalId });
  if (approval === undefined) throw new Error("no approval");
  return approval;
}

async function eventsOf(policy: TestPolicy, callId: string): Promise<(string | undefined)[]> {
  const { entries } = await policy.audit.listRecords({ callId });
  return entries.map(({ record }) => record?.event.case);
}

describe("two replicas on one database", () => {
  it("decide about a call once, however often both are asked at the same time", async () => {
    const [a, b] = await startTwo();
    const request = testRequest({ tool: "device.ping" });
    const asked = [a, b, a, b, b, a].map(({ policy }) => policy.authorize({ request }));
    const decisions = (await Promise.all(asked)).map(({ decision }) => decision && toBinary(DecisionSchema, decision));
    expect(new Set(decisions.map((bytes) => Buffer.from(bytes ?? []).toString("hex"))).size).toBe(1);
    expect(await eventsOf(b, request.callId)).toEqual(["decided"]);
  });

  it("write one log without a gap while both are busy, and it verifies", async () => {
    const [a, b] = await startTwo({ checkpointDelayMs: 5 });
    const calls = 150;
    const answers = await Promise.all(
      Array.from({ length: calls }, async (_, i) => {
        const { policy } = i % 2 === 0 ? a : b;
        await new Promise((resolve) => setTimeout(resolve, i % 40));
        return policy.authorize({ request: testRequest({ tool: ["device.ping", "weather:now"][i % 3] ?? "exec" }) });
      }),
    );
    const indexes = answers.map(({ decision }) => Number(decision?.auditIndex)).sort((x, y) => x - y);
    // Before them come the policies that the two have loaded.
    expect(indexes).toEqual(Array.from({ length: calls }, (_, i) => i + 2));
    await eventually(async () => {
      const { findings, signed } = await verifyDatabase(a);
      expect({ findings, signed }).toEqual({ findings: [], signed: calls + 2 });
    });
  });

  it("prove on either what the other has appended", async () => {
    const [a, b] = await startTwo({ checkpointDelayMs: 5 });
    for (const [from, to] of [
      [a, b],
      [b, a],
    ] as const) {
      const { decision } = await from.policy.authorize({ request: testRequest({ tool: "device.ping" }) });
      const index = decision?.auditIndex ?? 0n;
      await eventually(async () => {
        const { proof } = await to.audit.getInclusionProof({ index });
        expect(Number(proof?.size)).toBeGreaterThan(Number(index));
      });
      const { checkpoint } = await to.audit.getCheckpoint({});
      expect(Number(checkpoint?.size)).toBeGreaterThan(Number(index));
    }
  });

  it("go on without the one that signed, as soon as it has left", async () => {
    const [a, b] = await startTwo({ checkpointDelayMs: 5 });
    await eventually(async () => expect((await a.audit.getCheckpoint({})).checkpoint).toBeDefined());
    await a.stop();
    const { decision } = await b.policy.authorize({ request: testRequest({ tool: "device.ping" }) });
    await eventually(async () => {
      const { checkpoint } = await b.audit.getCheckpoint({});
      expect(Number(checkpoint?.size)).toBeGreaterThan(Number(decision?.auditIndex));
    });
    expect((await verifyDatabase(b)).findings).toEqual([]);
  });

  it("find a changed record, a cut tail and a changed node in the database", async () => {
    const changes = [
      ["update records set leaf = hash where idx = 700", "flipped 700"],
      ["delete from records where idx > 700", "truncated 701"],
      ["update nodes set hash = (select hash from records where idx = 0) where level = 3 and idx = 70", "bad_node 560"],
      ["delete from nodes where level = 9 and idx = 0", "bad_node 0"],
    ] as const;
    for (const [change, finding] of changes) {
      const [a] = await startTwo();
      const pings = Array.from({ length: 800 }, () =>
        a.policy.authorize({ request: testRequest({ tool: "device.ping" }) }),
      );
      await Promise.all(pings);
      for (const policy of running.splice(0)) await policy.stop();
      await runSql(a, change);
      const { findings } = await verifyDatabase(a);
      expect(findings.map(({ kind, index }) => `${kind} ${index}`)).toContain(finding);
    }
  });
});

describe("an approval", () => {
  it("that was given on one replica releases the call that waits on the other", async () => {
    const [a, b] = await startTwo();
    const { id, spec } = await hold(a);
    const link = openTestLink(a.policy);
    const waiting = link.ask({ case: "awaitApproval", value: { approvalId: id } });
    await b.approvals.approve({ approvalId: id, summaryDigest: spec?.summaryDigest ?? "" });
    const answer = await waiting;
    expect(answer.case === "decision" && answer.value.outcome.case).toBe("permit");
    await link.end();
    expect(await eventsOf(b, spec?.callId ?? "")).toEqual(["decided", "approvalDecided", "decided"]);
  });

  it("is released once, with one grant, where calls wait for it on both", async () => {
    const [a, b] = await startTwo();
    const { id, spec } = await hold(b);
    const links = [a, b].map(({ policy }) => openTestLink(policy));
    const waiting = links.map((link) => link.ask({ case: "awaitApproval", value: { approvalId: id } }));
    await a.approvals.approve({ approvalId: id, summaryDigest: spec?.summaryDigest ?? "" });
    const grants = (await Promise.all(waiting)).map((answer) =>
      answer.case === "decision" && answer.value.outcome.case === "permit" ? answer.value.outcome.value.grantId : "",
    );
    expect(grants[0]).toMatch(/^[0-9a-f]{32}$/);
    expect(grants[1]).toBe(grants[0]);
    for (const link of links) await link.end();
    expect(await eventsOf(b, spec?.callId ?? "")).toEqual(["decided", "approvalDecided", "decided"]);
  });

  it("is decided once, where both are asked at the same time", async () => {
    const [a, b] = await startTwo();
    const { id, spec } = await hold(a);
    const approval = { approvalId: id, summaryDigest: spec?.summaryDigest ?? "" };
    const results = await Promise.allSettled([a.approvals.approve(approval), b.approvals.deny({ approvalId: id })]);
    const refused = results.flatMap((result) => (result.status === "rejected" ? [reasonOf(result.reason)] : []));
    expect(refused).toEqual([ErrorReason.APPROVAL_DECIDED]);
    expect(await eventsOf(a, spec?.callId ?? "")).toEqual(["decided", "approvalDecided"]);
  });

  it("shows on a watch of the other replica when it is new and when it is decided, once each", async () => {
    const [a, b] = await startTwo();
    const before = await hold(b);
    const seen: string[] = [];
    const stop = new AbortController();
    const watching = (async () => {
      for await (const { approval } of a.approvals.watchApprovals({}, { signal: stop.signal }))
        seen.push(`${approval?.id} ${approval?.status?.state}`);
    })().catch(() => {});
    await eventually(() => expect(seen).toHaveLength(1));
    const { id } = await hold(b);
    await eventually(() => expect(seen).toHaveLength(2));
    await b.approvals.deny({ approvalId: id });
    await eventually(() => expect(seen).toHaveLength(3));
    await a.approvals.deny({ approvalId: before.id });
    await eventually(() => expect(seen).toHaveLength(4));
    stop.abort();
    await watching;
    const { PENDING, DENIED } = ApprovalState;
    expect(seen).toEqual([`${before.id} ${PENDING}`, `${id} ${PENDING}`, `${id} ${DENIED}`, `${before.id} ${DENIED}`]);
  });

  it("expires once, though both look at the time, and also where the one that took it is gone", async () => {
    const policyFile = join(await testFolder(), "policy.yaml");
    const rule = "rules:\n  - { id: all, effect: hold, message: Everything waits. }\n";
    await writeFile(policyFile, `version: 1\napprovals: { ttl: 1s }\n${rule}`);
    const [a, b] = await startTwo({ policyFile });
    const { id, spec } = await hold(a);
    await eventually(async () => {
      const { approval } = await b.approvals.getApproval({ approvalId: id });
      expect(approval?.status?.state).toBe(ApprovalState.EXPIRED);
    });
    const other = await hold(a);
    await eventually(async () => expect((await b.approvals.listApprovals({})).approvals).toHaveLength(2));
    await a.stop();
    await eventually(async () => {
      const { approval } = await b.approvals.getApproval({ approvalId: other.id });
      expect(approval?.status?.state).toBe(ApprovalState.EXPIRED);
    });
    expect(await eventsOf(b, spec?.callId ?? "")).toEqual(["decided", "approvalDecided"]);
    expect(await eventsOf(b, other.spec?.callId ?? "")).toEqual(["decided", "approvalDecided"]);
  });
});
