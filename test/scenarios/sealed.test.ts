import { mkdir, mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { type RegistryClient, registryClient } from "../../client/registry.ts";
import { ApprovalService } from "../../gen/ts/reeve/approval/v1/approval_service_pb.ts";
import { AuditService } from "../../gen/ts/reeve/audit/v1/audit_service_pb.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { openLogFile } from "../../lib/audit-verify/log-source.ts";
import { verifyLog } from "../../lib/audit-verify/verify.ts";
import { createInProcessBus } from "../../lib/events/in-process-bus.ts";
import { createLogger } from "../../lib/log/log.ts";
import { inMemoryTransport } from "../../lib/server/in-memory.fixture.ts";
import { openSqlite } from "../../lib/store/sqlite-handle.ts";
import { createDeviceAgent, type DeviceAgent } from "../../services/device-agent/service.ts";
import { createPolicyService, type PolicyService } from "../../services/policy/service.ts";
import { createRegistry, type Registry } from "../../services/registry/service.ts";
import { eventually } from "../../testkit/eventually.ts";

const DAY = 24 * 3_600_000;
const person = (id: string, role: Role, name: string) => ({ id, kind: "operator" as const, roles: [role], name });
const OPERATOR = person("op-1", Role.OPERATOR, "ada");
const AGENT = person("agent-1", Role.AGENT, "night agent");

/** Planted where only the tool may see them. */
const SECRETS = { env: "value-of-a-variable-4711", stdin: "text-for-the-input-4712" };

/** Planted where people may see them, and readers of files may not. */
const BODIES = {
  argument: "an-argument-4713",
  purpose: "a-purpose-4714",
  file: "text-of-a-file-4715",
  missing: "no-such-file-4716",
  held: "a-held-argument-4717",
};

let folder: string;
let nowMs: number;
let log: string[];
let policy: PolicyService;
let device: DeviceAgent;
let registry: Registry;

const now = () => nowMs;
const logger = () =>
  createLogger({ service: "test", level: "trace", destination: { write: (line: string) => void log.push(line) } });

async function startAll(): Promise<void> {
  const bus = createInProcessBus();
  policy = await createPolicyService({ config: { stateDir: join(folder, "policy") }, logger: logger(), bus, now });
  const roots = { readRoots: [], writeRoots: [join(folder, "work")], denied: [join(folder, "device")] };
  device = await createDeviceAgent({
    config: { stateDir: join(folder, "device"), name: "desk", mode: Mode.ALL, labels: {}, ...roots },
    grantKeys: policy.grantKeys,
    logger: logger(),
    env: process.env,
    now,
  });
  registry = await createRegistry({
    config: { stateDir: join(folder, "registry") },
    policy: policy.link("registry"),
    devices: new Map([["desk", device.link]]),
    bus,
    logger: logger(),
    now,
  });
}

async function stopAll(): Promise<void> {
  await Promise.all([registry.close(), device.close()]);
  await policy.close();
}

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-sealed-"));
  await mkdir(join(folder, "work"));
  nowMs = Date.now();
  log = [];
  await startAll();
});

afterEach(async () => {
  await stopAll();
  await rm(folder, { recursive: true });
});

function as(principal: typeof OPERATOR): RegistryClient {
  return registryClient(inMemoryTransport(registry.routes, { principal }));
}

const approvals = () => createClient(ApprovalService, inMemoryTransport(policy.routes, { principal: OPERATOR }));
const audit = () => createClient(AuditService, inMemoryTransport(policy.routes, { principal: OPERATOR }));

async function run(tool: string, params: Record<string, unknown>, principal = OPERATOR): Promise<CompleteCall> {
  const request = {
    device: "desk",
    tool,
    params: params as never,
    purpose: BODIES.purpose,
    approvalWait: durationFromMs(1),
  };
  const { call } = await as(principal).callTool(request);
  if (call === undefined) throw new Error("no call");
  return completeCall(call);
}

const read = async ({ id }: CompleteCall) => (await as(OPERATOR).getCall({ callId: id })).call;

/** The files below the folders of state, logs of databases included, that hold a text. */
async function filesWith(text: string): Promise<string[]> {
  const found: string[] = [];
  for (const part of ["policy", "registry", "device"]) {
    for (const name of await readdir(join(folder, part), { recursive: true })) {
      const bytes = await readFile(join(folder, part, name)).catch(() => Buffer.alloc(0));
      if (bytes.includes(text)) found.push(join(part, name));
    }
  }
  return found;
}

/** One call of each kind: with secrets, with a result, one that fails, and one that is held. */
async function plant(): Promise<Record<"secret" | "read" | "failed" | "held", CompleteCall>> {
  const path = join(folder, "work", "a.txt");
  const secret = await run("exec", {
    argv: ["sh", "-c", 'cat; echo "$A_NAME"', BODIES.argument],
    env: { A_NAME: SECRETS.env },
    stdin: SECRETS.stdin,
  });
  await run("fs.write", { path, text: BODIES.file });
  return {
    secret,
    read: await run("fs.read", { path }),
    failed: await run("fs.read", { path: join(folder, "work", BODIES.missing) }),
    held: await run("exec", { argv: ["touch", BODIES.held], env: { A_NAME: SECRETS.env } }, AGENT),
  };
}

describe("what a call says", () => {
  it("is nowhere in clear in a file or a log, and secrets are shown nowhere", async () => {
    const calls = await plant();
    expect([calls.secret, calls.read, calls.failed, calls.held].map(({ status }) => status.state)).toEqual([
      CallState.SUCCEEDED,
      CallState.SUCCEEDED,
      CallState.FAILED,
      CallState.HELD,
    ]);
    expect(calls.secret.status.output?.stdout).toBe(`${SECRETS.stdin}${SECRETS.env}\n`);
    for (const text of [...Object.values(SECRETS), ...Object.values(BODIES)]) {
      expect(await filesWith(text), text).toEqual([]);
    }
    for (const text of Object.values(SECRETS)) {
      expect(log.join("")).not.toContain(text);
      const shown = [
        ...(await as(OPERATOR).listCalls({})).calls,
        ...(await approvals().listApprovals({})).approvals,
        await approvals().getApproval({ approvalId: calls.held.status.approval?.id ?? "", view: 2 }),
        ...(await audit().listRecords({})).entries,
      ];
      expect(JSON.stringify(shown, (_, value) => (typeof value === "bigint" ? String(value) : value))).not.toContain(
        text,
      );
    }
  });

  it("is shown to those who may see it: arguments, purpose, output, error, and who and where by name", async () => {
    const calls = await plant();
    expect(await read(calls.secret)).toMatchObject({
      spec: {
        arguments: {
          argv: ["sh", "-c", 'cat; echo "$A_NAME"', BODIES.argument],
          env: { A_NAME: "[redacted]" },
          stdin: "[redacted]",
        },
        purpose: BODIES.purpose,
        deviceName: "desk",
        principalId: "op-1",
        principalName: "ada",
      },
    });
    expect((await read(calls.read))?.status?.output?.text).toBe(BODIES.file);
    const failed = await read(calls.failed);
    expect(failed?.status?.errorMessage).toContain(BODIES.missing);
    expect(failed?.status?.error?.reason).toBe(calls.failed.status.error?.reason);
    const held = await read(calls.held);
    expect(held).toMatchObject({
      spec: {
        arguments: { argv: ["touch", BODIES.held], env: { A_NAME: "[redacted]" } },
        principalName: "night agent",
      },
    });
    const listed = (await as(OPERATOR).listCalls({})).calls;
    expect(listed.map(({ spec }) => spec?.tool)).toEqual(["exec", "fs.read", "fs.read", "fs.write", "exec"]);
    expect(listed[0]?.spec?.arguments).toEqual(held?.spec?.arguments);
    expect(listed[1]).toMatchObject({
      spec: { purpose: BODIES.purpose },
      status: { errorMessage: failed?.status?.errorMessage },
    });
    expect(listed.map(({ status }) => status?.output)).toEqual(Array(5).fill(undefined));
    const { approval } = await approvals().getApproval({ approvalId: calls.held.status.approval?.id ?? "" });
    expect(approval?.spec).toMatchObject({ principalName: "night agent", deviceName: "desk" });
    expect(approval?.spec?.summary).toContain("Asked by:  night agent (agent-1; agent)");
  });

  it("still runs with its secrets after a restart and a yes, and then loses them", async () => {
    const { id, status } = await run(
      "exec",
      { argv: ["sh", "-c", 'echo "got $A_NAME" > out.txt'], cwd: join(folder, "work"), env: { A_NAME: SECRETS.env } },
      AGENT,
    );
    const approvalId = status.approval?.id ?? "";
    await stopAll();
    await startAll();
    const { approval } = await approvals().getApproval({ approvalId });
    await approvals().approve({ approvalId, summaryDigest: approval?.spec?.summaryDigest ?? "" });
    await eventually(async () =>
      expect((await as(OPERATOR).getCall({ callId: id })).call?.status?.state).toBe(CallState.SUCCEEDED),
    );
    expect(await readFile(join(folder, "work", "out.txt"), "utf8")).toBe(`got ${SECRETS.env}\n`);
    await eventually(async () => expect(requestsKept()).toBe(0));
    const db = openSqlite(join(folder, "registry", "registry.db"));
    const [row] = db.run("select args, shown from calls where id = ?", [id]).rows as {
      args: Uint8Array;
      shown: Uint8Array;
    }[];
    db.close();
    expect(row?.args.length).toBe(0);
    expect(row?.shown.length).toBeGreaterThan(0);
  });
});

/** What policy keeps of the questions about held calls, secrets included. */
function requestsKept(): number {
  const db = openSqlite(join(folder, "policy", "policy.db"));
  const [row] = db.run("select count(*) as kept from approval_requests", []).rows as { kept: number }[];
  db.close();
  return row?.kept ?? -1;
}

describe("the retention", () => {
  it("deletes what calls say, keeps the rest, and breaks no proof", async () => {
    const calls = await plant();
    await approvals().deny({ approvalId: calls.held.status.approval?.id ?? "" });
    const ended = { ...calls.read, ...(await recorded(calls.read)) };
    const { size } = await verified();
    await stopAll();
    nowMs += 29 * DAY;
    await startAll();
    expect((await read(calls.read))?.spec?.arguments).toBeDefined();
    await stopAll();
    nowMs += 2 * DAY;
    await startAll();
    await eventually(async () => expect((await read(calls.read))?.status?.bodiesDeleteTime).toBeDefined());
    const kept = await read(calls.read);
    expect(kept).toMatchObject({
      spec: { purpose: "", argsDigest: calls.read.spec.argsDigest },
      status: {
        state: CallState.SUCCEEDED,
        decision: calls.read.status.decision,
        receipt: { statement: calls.read.status.receipt?.statement },
        outcomeAuditIndex: ended.status.outcomeAuditIndex,
      },
    });
    expect(kept?.spec?.arguments).toBeUndefined();
    expect(kept?.status?.output).toBeUndefined();
    expect(await read(calls.failed)).toMatchObject({
      status: { errorMessage: "", error: { reason: calls.failed.status.error?.reason } },
    });
    await eventually(async () => {
      const { approval } = await approvals().getApproval({ approvalId: calls.held.status.approval?.id ?? "" });
      expect(approval?.spec).toMatchObject({
        summary: "",
        purpose: "",
        tool: "exec",
        argsDigest: calls.held.spec.argsDigest,
      });
      expect(approval?.spec?.arguments).toBeUndefined();
    });
    const after = await verified();
    expect(after.size).toBeGreaterThanOrEqual(size);
    const index = ended.status.outcomeAuditIndex ?? 0n;
    const proof = await audit().getInclusionProof({ index });
    expect(proof.entry?.index).toBe(index);
    expect(proof.text).toContain("c2sp.org/tlog-proof");
  });
});

async function recorded(call: CompleteCall): Promise<CompleteCall> {
  return eventually(async () => {
    const stored = await read(call);
    if (stored?.status?.outcomeAuditIndex === undefined) throw new Error("not recorded yet");
    return completeCall(stored);
  });
}

async function verified() {
  const source = openLogFile(join(folder, "policy", "policy.db"));
  try {
    const report = await verifyLog(source, { verifierKey: policy.checkpointKey });
    expect(report.findings).toEqual([]);
    return report;
  } finally {
    source.close();
  }
}
