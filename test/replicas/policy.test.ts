import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { ApprovalService } from "../../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { AuditService } from "../../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { PolicyService } from "../../gen/ts/reeve/policy/v1/policy_service_pb.ts";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { openTestLink, type TestLink } from "../../services/policy/testing/test-link.ts";
import { verifyDatabase } from "../../services/policy/testing/test-replicas.ts";
import { testRequest } from "../../services/policy/testing/test-requests.ts";
import { eventually } from "../../testkit/eventually.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { type PostgresServer, startPostgresServer } from "../../testkit/postgres-server.ts";
import { type ServiceProcess, startServiceProcess } from "../../testkit/service-process.ts";

/** A policy replica in a process of its own, and clients for it. */
interface Replica extends ReturnType<typeof clientsOf> {
  process: ServiceProcess;
}

let server: PostgresServer;
let folder = "";
let databaseUrl = "";
let tokens: { operator: string; service: string };
let a: Replica;
let b: Replica;

beforeAll(async () => {
  server = await startPostgresServer();
  databaseUrl = await server.newDatabase();
  folder = await mkdtemp(join(tmpdir(), "reeve-replicas-"));
  const file = createTokenFile(join(folder, "tokens.json"));
  const issue = (role: Role, name: string) => file.issueToken({ name, roles: [role] }).token;
  tokens = { operator: issue(Role.OPERATOR, "owner"), service: issue(Role.SERVICE, "registry") };
  a = await startReplica("a");
  // The first one signs the log's head before there is a second.
  await pingOn(a);
  await eventually(async () => expect(await signedSize(a)).toBeGreaterThan(1));
  b = await startReplica("b");
});

afterAll(async () => {
  for (const replica of [a, b]) {
    replica?.process.resume();
    await replica?.process.stop();
    replica?.close();
  }
  await server.close();
  await rm(folder, { recursive: true, force: true });
});

async function startReplica(name: string): Promise<Replica> {
  const [port = 0] = await freePorts(1);
  const started = await startServiceProcess("policy", port, {
    REEVE_POLICY_PORT: String(port),
    REEVE_POLICY_STATE_DIR: join(folder, name),
    REEVE_POLICY_DATABASE_URL: databaseUrl,
    REEVE_SEALING_KEY_FILE: join(folder, "sealing.key"),
    REEVE_TOKENS_FILE: join(folder, "tokens.json"),
  });
  return { process: started, ...clientsOf(started.url) };
}

function clientsOf(baseUrl: string) {
  const operator = createServiceTransport({ baseUrl, token: tokens.operator });
  const service = createServiceTransport({ baseUrl, token: tokens.service });
  return {
    policy: createClient(PolicyService, service),
    approvals: createClient(ApprovalService, operator),
    audit: createClient(AuditService, operator),
    close() {
      operator.close();
      service.close();
    },
  };
}

async function pingOn({ policy }: Replica): Promise<number> {
  const { decision } = await policy.authorize({ request: testRequest({ tool: "device.ping" }) });
  expect(decision?.outcome.case).toBe("permit");
  return Number(decision?.auditIndex);
}

async function holdOn({ policy, approvals }: Replica): Promise<{ approvalId: string; summaryDigest: string }> {
  const { decision } = await policy.authorize({
    request: testRequest({ tool: "shell.eval", args: { command: "ls" } }),
  });
  if (decision?.outcome.case !== "hold") throw new Error("not held");
  const { approvalId } = decision.outcome.value;
  const { approval } = await approvals.getApproval({ approvalId });
  return { approvalId, summaryDigest: approval?.spec?.summaryDigest ?? "" };
}

async function releasedOn(link: TestLink, approvalId: string): Promise<string | undefined> {
  const answer = await link.ask({ case: "awaitApproval", value: { approvalId } });
  return answer.case === "decision" ? answer.value.outcome.case : answer.case;
}

async function signedSize({ audit }: Replica): Promise<number> {
  return Number((await audit.getCheckpoint({})).checkpoint?.size ?? 0);
}

async function findings() {
  const checkpointKey = await readFile(join(folder, "a", "checkpoint.vkey"), "utf8");
  return (await verifyDatabase({ databaseUrl, service: { checkpointKey } })).findings;
}

test("a replica that stands still loses the right to sign, and signs nothing when it goes on", async () => {
  a.process.pause();
  const index = await pingOn(b);
  await eventually(async () => expect(await signedSize(b)).toBeGreaterThan(index));
  a.process.resume();
  const later = await pingOn(a);
  await eventually(async () => expect(await signedSize(a)).toBeGreaterThan(later));
  expect(await findings()).toEqual([]);
});

test("a decision survives the replica that took it and is killed at once: who waits on another one gets it", async () => {
  const approval = await holdOn(a);
  const link = openTestLink(a.policy);
  const waiting = releasedOn(link, approval.approvalId);
  await b.approvals.approve(approval);
  await b.process.kill();
  expect(await waiting).toBe("permit");
  await link.end();
  await b.process.start();
});

test("who waited on a replica that was killed asks another one, and gets the decision that was taken meanwhile", async () => {
  const approval = await holdOn(a);
  const lost = openTestLink(a.policy);
  void releasedOn(lost, approval.approvalId);
  lost.end().catch(() => {});
  const link = openTestLink(b.policy);
  await a.approvals.approve(approval);
  await a.process.kill();
  expect(await releasedOn(link, approval.approvalId)).toBe("permit");
  await link.end();
  await a.process.start();
});

test("replicas that are killed again and again leave a log without a gap, and every call is decided once", async () => {
  const requests = Array.from({ length: 120 }, () => testRequest({ tool: "device.ping" }));
  const decided = new Map<string, bigint>();
  const decide = async (request: (typeof requests)[number], i: number): Promise<void> => {
    // As a registry does: the same question again, to the next replica, until there is an answer.
    for (let attempt = 0; attempt < 400; attempt++) {
      const { policy } = (i + attempt) % 2 === 0 ? a : b;
      const answer = await policy.authorize({ request }, { timeoutMs: 5000 }).catch(() => undefined);
      if (answer?.decision) return void decided.set(request.callId, answer.decision.auditIndex);
      await new Promise((resolve) => setTimeout(resolve, 50));
    }
  };
  const deciding = Promise.all(
    requests.map(async (request, i) => {
      await new Promise((resolve) => setTimeout(resolve, i * 40));
      await decide(request, i);
    }),
  );
  for (const { process: victim } of [a, b, a]) {
    await new Promise((resolve) => setTimeout(resolve, 600));
    await victim.kill();
    await victim.start();
  }
  await deciding;
  expect(decided.size).toBe(requests.length);
  expect(new Set(decided.values()).size).toBe(requests.length);
  for (const request of requests.slice(0, 20)) {
    const { entries } = await b.audit.listRecords({ callId: request.callId });
    expect(entries.map(({ index }) => index)).toEqual([decided.get(request.callId)]);
  }
  const newest = Math.max(...[...decided.values()].map(Number));
  await eventually(async () => expect(await signedSize(a)).toBeGreaterThan(newest));
  expect(await findings()).toEqual([]);
});
