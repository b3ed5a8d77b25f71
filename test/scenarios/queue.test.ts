import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { isEnd } from "../../client/call-progress.ts";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import type { Decided } from "../../gen/ts/reeve/audit/v1/record_pb.ts";
import { CallSchema, CallState, DecisionKind } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { LinkState } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { openDatabase } from "../../lib/store/database.ts";
import { type RegistryTables, registryMigrations } from "../../services/registry/tables.ts";
import { approveCall, pendingApproval } from "../../testkit/approvals.ts";
import { runReeve, shellOf } from "../../testkit/cli.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { eventually } from "../../testkit/eventually.ts";

const RULES = `version: 1
rules:
  - { id: roots, effect: allow, tools: [fs.read], message: Reading is free. }
  - { id: agents, effect: hold, when: "'agent' in principal.roles", message: Agents wait. }
  - { id: operators, effect: allow, when: "'operator' in principal.roles", message: Operators may. }
`;

let plane: ControlPlane;
let operator: Caller;
let agent: Caller;
let policyFile: string;
/** For each test: the call's id, and a file that the call adds a line to. */
let callId: string;
let mark: string;
let count = 0;

beforeAll(async () => {
  policyFile = join(await mkdtemp(join(tmpdir(), "reeve-queue-")), "policy.yaml");
  await writeFile(policyFile, RULES);
  plane = await startControlPlane({ policyFile });
  operator = callerOf(plane, plane.tokens.operator);
  agent = callerOf(plane, plane.tokens.agent);
});
afterAll(async () => {
  await plane.close();
  await rm(dirname(policyFile), { recursive: true });
});
beforeEach(async () => {
  count += 1;
  callId = `kept-${count}`;
  mark = join(plane.work, callId);
  await changeRules(RULES);
  await plane.processes.device.stop();
  await deviceIs(LinkState.OFFLINE);
});

test("a call waits for its device, is delivered once with a grant of its own, and its watcher sees it", async () => {
  const { call } = await operator.registry.callTool(request());
  expect(call).toMatchObject({ status: { state: CallState.QUEUED, grantId: "" } });
  expect(call?.spec?.queueExpireTime).toBeDefined();
  const queued = await operator.registry.listCalls({ state: CallState.QUEUED });
  expect(queued.calls.map(({ id }) => id)).toEqual([callId]);
  const states: CallState[] = [];
  const watching = (async () => {
    for await (const { event } of operator.registry.watchCall({ callId })) {
      if (event?.event.case === "call") states.push(completeCall(event.event.value).status.state);
    }
  })();
  await plane.processes.device.start();
  expect(await ended()).toMatchObject({ status: { state: CallState.SUCCEEDED } });
  await watching;
  expect(states).toEqual([CallState.QUEUED, CallState.PERMITTED, CallState.DISPATCHED, CallState.SUCCEEDED]);
  expect(await readFile(mark, "utf8")).toBe("ran\n");
  const records = await recordsOf(3);
  expect(records.map(({ event }) => event)).toMatchObject([
    { case: "decided", value: { decision: DecisionKind.PERMIT } },
    { case: "decided", value: { decision: DecisionKind.PERMIT } },
    { case: "outcome", value: { state: CallState.SUCCEEDED } },
  ]);
  const [first, second] = records.map(({ event }) => (event.value as Decided).grantId);
  expect(first).not.toBe(second);
  expect(records[2]?.event.value).toMatchObject({ grantId: second });
});

test("a call that is not to be kept fails at once, as before", async () => {
  const { call } = await operator.registry.callTool({ ...request(), queueTimeout: durationFromMs(0) });
  expect(call).toMatchObject({ status: { state: CallState.FAILED, error: { reason: ErrorReason.DEVICE_OFFLINE } } });
});

test("a call to a device that is there is not kept", async () => {
  await plane.processes.device.start();
  await deviceIs(LinkState.ONLINE);
  expect((await operator.registry.callTool(request())).call).toMatchObject({ status: { state: CallState.SUCCEEDED } });
});

test("a queued call is denied where the rules deny it by then", async () => {
  await operator.registry.callTool(request());
  await changeRules(`${RULES}  - { id: frozen, effect: deny, tools: [exec], message: Nothing runs now. }\n`);
  await plane.processes.device.start();
  expect(await ended()).toMatchObject({
    status: {
      state: CallState.DENIED,
      error: { reason: ErrorReason.POLICY_DENIED },
      errorMessage: "Nothing runs now.",
    },
  });
  expect(existsSync(mark)).toBe(false);
});

test("a queued call is held anew where the rules ask for a human by then", async () => {
  await operator.registry.callTool(request());
  await changeRules(`${RULES}  - { id: careful, effect: hold, tools: [exec], message: A person has to look. }\n`);
  await plane.processes.device.start();
  await approveCall(operator, callId);
  expect(await ended()).toMatchObject({ status: { state: CallState.SUCCEEDED } });
});

test("an approval covers the call that waited for its device after it, and no person is asked twice", async () => {
  const { id: approvalId } = await approvedWhileOffline();
  await plane.processes.device.start();
  expect(await ended()).toMatchObject({ status: { state: CallState.SUCCEEDED, approval: { id: approvalId } } });
  const { approvals } = await operator.approvals.listApprovals({});
  expect(approvals.filter(({ spec }) => spec?.callId === callId)).toHaveLength(1);
  const decided = (await recordsOf(5)).flatMap(({ event }) => (event.case === "decided" ? [event.value] : []));
  expect(decided.map(({ decision, approvalId: by }) => [decision, by])).toEqual([
    [DecisionKind.HOLD, approvalId],
    [DecisionKind.PERMIT, approvalId],
    [DecisionKind.PERMIT, approvalId],
  ]);
});

test("a queued call ends when its time is over, on record", async () => {
  await operator.registry.callTool({ ...request(), queueTimeout: durationFromMs(1000) });
  expect(await ended()).toMatchObject({
    status: { state: CallState.FAILED, error: { reason: ErrorReason.QUEUE_EXPIRED, metadata: { device: "this" } } },
  });
  const [, outcome] = await recordsOf(2);
  expect(outcome?.event).toMatchObject({
    case: "outcome",
    value: { state: CallState.FAILED, reason: ErrorReason.QUEUE_EXPIRED, grantId: "" },
  });
});

test.each(["kill", "stop"] as const)("a queued call outlives a %s of the registry", async (end) => {
  await operator.registry.callTool(request());
  await plane.processes.registry[end]();
  await plane.processes.registry.start();
  expect((await call()).status.state).toBe(CallState.QUEUED);
  await plane.processes.device.start();
  expect(await ended()).toMatchObject({ status: { state: CallState.SUCCEEDED } });
  expect(await readFile(mark, "utf8")).toBe("ran\n");
});

test("a queued call runs where its device came back while the registry was gone", async () => {
  await operator.registry.callTool(request());
  await plane.processes.registry.kill();
  await plane.processes.device.start();
  await plane.processes.registry.start();
  expect(await ended()).toMatchObject({ status: { state: CallState.SUCCEEDED } });
});

test("a queued call outlives a registry that died before it reached the device that had just left", async () => {
  await operator.registry.callTool(request());
  await plane.processes.registry.kill();
  await permittedOnDisk();
  await plane.processes.registry.start();
  expect((await call()).status.state).toBe(CallState.QUEUED);
  await plane.processes.device.start();
  expect(await ended()).toMatchObject({ status: { state: CallState.SUCCEEDED } });
  expect(await readFile(mark, "utf8")).toBe("ran\n");
});

test("a queued call that runs while its registry dies learns with its true end, whatever the rules say by then", async () => {
  await plane.processes.device.start();
  await deviceIs(LinkState.ONLINE);
  const argv = ["sh", "-c", `echo ran >> ${mark}; while [ -e ${mark} ]; do sleep 0.02; done; echo done`];
  await operator.registry.callTool({ ...request(), params: { argv }, noWait: true });
  await eventually(() => expect(existsSync(mark)).toBe(true));
  await plane.processes.registry.kill();
  await changeRules(`${RULES}  - { id: frozen, effect: deny, tools: [exec], message: Nothing runs now. }\n`);
  await plane.processes.registry.start();
  await rm(mark);
  expect(await ended()).toMatchObject({ status: { state: CallState.SUCCEEDED, output: { stdout: "done\n" } } });
  expect(existsSync(mark)).toBe(false);
});

test("a queued call is denied, on record, where the token that asked for it is gone by then", async () => {
  const tokens = createTokenFile(join(plane.folder, "tokens.json"));
  const { token, entry } = tokens.issueToken({ name: "gone soon", roles: [Role.OPERATOR] });
  // Services look at the file of tokens once a second.
  const { call: kept } = await eventually(() => callerOf(plane, token).registry.callTool(request()));
  expect(kept).toMatchObject({ spec: { principalId: entry.id }, status: { state: CallState.QUEUED } });
  tokens.revokeToken(entry.id);
  await plane.processes.device.start();
  expect(await ended()).toMatchObject({
    status: { state: CallState.DENIED, error: { reason: ErrorReason.TOKEN_REFUSED, metadata: { why: "revoked" } } },
  });
  expect(existsSync(mark)).toBe(false);
  const [, outcome] = await recordsOf(2);
  expect(outcome?.event).toMatchObject({
    case: "outcome",
    value: { state: CallState.DENIED, reason: ErrorReason.TOKEN_REFUSED },
  });
});

test("a queued call is canceled like any other, and never starts", async () => {
  await operator.registry.callTool(request());
  const { call: canceled } = await operator.registry.cancelCall({ callId });
  expect(canceled).toMatchObject({ status: { state: CallState.CANCELED } });
  await plane.processes.device.start();
  await deviceIs(LinkState.ONLINE);
  expect((await call()).status.state).toBe(CallState.CANCELED);
  expect(existsSync(mark)).toBe(false);
});

test("plain HTTP answers 202, and the command line says what goes on", async () => {
  const response = await fetch(`${plane.registry.url}/invoke`, {
    method: "POST",
    headers: { authorization: `Bearer ${plane.tokens.operator}`, "content-type": "application/json" },
    body: JSON.stringify({ ...request(), queueTimeout: "600s" }),
  });
  expect([response.status, await response.json()]).toMatchObject([202, { status: { state: "CALL_STATE_QUEUED" } }]);
  const reeve = (...args: string[]) => runReeve(args, shellOf(plane, plane.tokens.operator, plane.folder));
  const typed = await reeve("call", "--queue", "1h", "--call-id", "typed", "this", "exec", "--argv", "uname");
  expect(typed).toMatchObject({ code: 4, stderr: expect.stringMatching(/typed is queued until .* for its device/) });
  const listed = await reeve("call", "list", "--state", "queued");
  expect(listed.stdout).toMatch(/queued.*typed/);
  expect((await reeve("call", "show", "typed")).stdout).toContain("queued until");
  expect((await reeve("call", "cancel", "typed")).code).toBe(0);
  await operator.registry.cancelCall({ callId });
});

test("the log has all of it without a finding", async () => {
  const key = join(plane.folder, "policy-0", "checkpoint.vkey");
  const result = await runReeve(["audit", "verify", "--db", plane.policyDatabase, "--key", key], {
    HOME: plane.folder,
  });
  expect(result.stdout, result.stderr).toContain("The audit log verifies.");
});

const request = () => ({
  device: "this",
  tool: "exec",
  params: { argv: ["sh", "-c", `echo ran >> ${mark}`] },
  callId,
  queueTimeout: durationFromMs(600_000),
});

async function deviceIs(link: LinkState): Promise<void> {
  await eventually(async () => expect((await operator.registry.getDevice({ device: "this" })).device?.link).toBe(link));
}

/** Leaves the call as a registry does that dies after it was permitted, and before its device was reached. */
async function permittedOnDisk(): Promise<void> {
  const path = join(plane.folder, "registry-0", "registry.db");
  const db = await openDatabase<RegistryTables>({ path, migrations: registryMigrations });
  const { call: bytes } = await db
    .selectFrom("calls")
    .select("call")
    .where("id", "=", callId)
    .executeTakeFirstOrThrow();
  const left = completeCall(fromBinary(CallSchema, bytes));
  Object.assign(left.status, { state: CallState.PERMITTED, grantId: "ab".repeat(16) });
  const row = { state: left.status.state, call: toBinary(CallSchema, left) };
  await db.updateTable("calls").set(row).where("id", "=", callId).execute();
  await db.destroy();
}

/** An agent's call that was held, and approved while its device is offline. */
async function approvedWhileOffline() {
  const { call: held } = await agent.registry.callTool({ ...request(), noWait: true });
  callId = held?.id ?? "";
  const approval = await pendingApproval(operator, callId);
  await approveCall(operator, callId);
  await eventually(async () => expect((await call()).status.state).toBe(CallState.QUEUED));
  return approval;
}

async function changeRules(text: string): Promise<void> {
  await writeFile(policyFile, text);
  const isActive = async () => expect((await operator.policy.getPolicy({})).text).toBe(text);
  await eventually(isActive);
}

async function call(): Promise<CompleteCall> {
  const { call: found } = await operator.registry.getCall({ callId });
  if (found === undefined) throw new Error("no call");
  return completeCall(found);
}

function ended(): Promise<CompleteCall> {
  return eventually(async () => {
    const found = await call();
    if (!isEnd(found.status.state)) throw new Error(`it is in state ${found.status.state}`);
    return completeCall(found);
  });
}

function recordsOf(atLeast: number) {
  return eventually(async () => {
    const { entries } = await operator.audit.listRecords({ callId });
    expect(entries.length).toBeGreaterThanOrEqual(atLeast);
    return entries.flatMap(({ record }) => record ?? []);
  });
}
