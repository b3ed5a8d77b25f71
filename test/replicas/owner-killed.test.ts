import { existsSync } from "node:fs";
import { mkdir, mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, beforeEach, expect, test } from "vitest";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { createTokenFile } from "../../lib/auth/token-file.ts";
import { loadSealingKey } from "../../lib/identity/seal.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { openCallStream, printedIn } from "../../testkit/call-stream.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { eventually } from "../../testkit/eventually.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { startNatsServer } from "../../testkit/nats-server.ts";
import { type PostgresServer, startPostgresServer } from "../../testkit/postgres-server.ts";
import { type ServiceProcess, startServiceProcess } from "../../testkit/service-process.ts";

const parts = new AsyncDisposableStack();
let postgres: PostgresServer;
let first: ServiceProcess;
let second: ServiceProcess;
let device: ServiceProcess;
/** Through the first and the second replica. */
let operators: [Caller, Caller];
let agents: [Caller, Caller];
let work: string;
let mark: string;
let callId: string;
let count = 0;

beforeAll(async () => {
  const folder = await mkdtemp(join(tmpdir(), "reeve-owner-"));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  work = join(folder, "work");
  await mkdir(work);
  postgres = parts.adopt(await startPostgresServer(), (one) => one.close());
  const nats = parts.adopt(await startNatsServer(), (one) => one.close());
  const [policyPort = 0, devicePort = 0, ...registryPorts] = await freePorts(4);
  const tokensFile = join(folder, "tokens.json");
  const issue = (role: Role, name: string) => createTokenFile(tokensFile).issueToken({ name, roles: [role] }).token;
  const [operator, agent, service] = [
    issue(Role.OPERATOR, "owner"),
    issue(Role.AGENT, "agent"),
    issue(Role.SERVICE, "s"),
  ];
  const sealingKeyFile = join(folder, "sealing.key");
  await loadSealingKey(sealingKeyFile);
  const shared = {
    REEVE_TOKENS_FILE: tokensFile,
    REEVE_LOG_LEVEL: "info",
    REEVE_SEALING_KEY_FILE: sealingKeyFile,
  };
  const start = async (command: string, port: number, env: Record<string, string>) =>
    parts.adopt(await startServiceProcess(command, port, { ...shared, ...env }), (one) => one.stop());
  const policy = await start("policy", policyPort, {
    REEVE_POLICY_PORT: String(policyPort),
    REEVE_POLICY_STATE_DIR: join(folder, "policy"),
  });
  device = await start("device", devicePort, {
    REEVE_DEVICE_PORT: String(devicePort),
    REEVE_DEVICE_STATE_DIR: join(folder, "device"),
    REEVE_DEVICE_MODE: "all",
    REEVE_DEVICE_WRITE_ROOTS: work,
    REEVE_GRANT_KEY_FILE: join(folder, "policy", "grant.pub"),
  });
  const [one, other] = await Promise.all(
    registryPorts.map((port, i) =>
      start("registry", port, {
        REEVE_REGISTRY_PORT: String(port),
        REEVE_REGISTRY_STATE_DIR: join(folder, `registry-${i}`),
        REEVE_REGISTRY_DATABASE_URL: postgres.url,
        REEVE_REPLICA_LEASE: "1s",
        REEVE_NATS_URL: nats.url,
        REEVE_POLICY_URL: policy.url,
        REEVE_DIAL_DEVICES: "this=http://192.0.2.1:7402",
        REEVE_DIAL_THIS_URL: device.url,
        REEVE_SERVICE_TOKEN: service,
      }),
    ),
  );
  if (one === undefined || other === undefined) throw new Error("two registries were wanted");
  [first, second] = [one, other];
  const through = (registry: ServiceProcess, token: string) => callerOf({ registry, policy }, token);
  operators = [through(first, operator), through(second, operator)];
  agents = [through(first, agent), through(second, agent)];
});
afterAll(() => parts.disposeAsync());
beforeEach(() => {
  callId = `owner-${++count}`;
  mark = join(work, callId);
});

/** The call's end as the second replica reports it. */
function ended(): Promise<CompleteCall> {
  return eventually(async () => {
    const { call } = await operators[1].registry.getCall({ callId });
    const state = call?.status?.state ?? CallState.UNSPECIFIED;
    if (call === undefined || state < CallState.SUCCEEDED || state > CallState.UNKNOWN) {
      throw new Error(`${callId} has not ended`);
    }
    return completeCall(call);
  });
}

/** What the audit log has about the call. */
async function recorded(): Promise<(string | undefined)[]> {
  const { entries } = await operators[1].audit.listRecords({ callId });
  return entries.map(({ record }) => record?.event.case);
}

test("a call that runs when its replica is killed learns with its true end by another, and runs once", async () => {
  const stream = openCallStream(operators[0].registry);
  const script = `echo run >> ${mark}.runs; touch ${mark}; echo started; while [ -e ${mark} ]; do sleep 0.02; done; echo ended`;
  stream.call({ tool: "exec", params: { argv: ["bash", "-c", script] }, callId });
  await stream.next(printedIn);
  const waiting = operators[1].registry.callTool({ tool: "exec", params: { argv: ["bash", "-c", script] }, callId });
  await first.kill();
  await expect(stream.end()).rejects.toThrow();
  await eventually(() => expect(second.log.some((line) => line.includes("calls claimed from"))).toBe(true));
  await rm(mark);
  const call = await ended();
  expect(call).toMatchObject({ status: { state: CallState.SUCCEEDED, output: { stdout: "started\nended\n" } } });
  expect((await waiting).call).toMatchObject({ status: { state: CallState.SUCCEEDED } });
  expect(await readFile(`${mark}.runs`, "utf8")).toBe("run\n");
  await eventually(async () => expect(await recorded()).toEqual(["decided", "outcome"]));
  await first.start();
});

test("a call that is held when its replica is killed runs once when it is approved", async () => {
  const request = { tool: "exec", params: { argv: ["bash", "-c", `echo run >> ${mark}`] }, callId };
  const { call } = await agents[0].registry.callTool({ ...request, noWait: true });
  callId = call?.id ?? "";
  await first.kill();
  await approveCall(operators[1], callId);
  expect((await ended()).status.state).toBe(CallState.SUCCEEDED);
  expect(await readFile(mark, "utf8")).toBe("run\n");
  await first.start();
});

test("a cancel at another replica reaches a call whose own replica was killed", async () => {
  const stream = openCallStream(operators[0].registry);
  const script = `echo $$ > ${mark}; echo started; while true; do sleep 0.02; done`;
  stream.call({ tool: "exec", params: { argv: ["bash", "-c", script] }, callId });
  await stream.next(printedIn);
  const pid = Number(await readFile(mark, "utf8"));
  await first.kill();
  await expect(stream.end()).rejects.toThrow();
  await operators[1].registry.cancelCall({ callId });
  expect((await ended()).status.state).toBe(CallState.CANCELED);
  expect(existsSync(`/proc/${pid}`)).toBe(false);
  await first.start();
});

test("a replica that leaves hands over what is held at once, and a call that runs learns by the other", async () => {
  const request = { tool: "exec", params: { argv: ["touch", mark] }, callId };
  const { call } = await agents[0].registry.callTool({ ...request, noWait: true });
  callId = call?.id ?? "";
  await first.stop();
  await approveCall(operators[1], callId);
  expect((await ended()).status.state).toBe(CallState.SUCCEEDED);
  expect(existsSync(mark)).toBe(true);
  await first.start();
});

test("calls that were open while the database was killed and started again end truthfully", async () => {
  const stream = openCallStream(operators[0].registry);
  const script = `echo run >> ${mark}.runs; touch ${mark}; echo started; while [ -e ${mark} ]; do sleep 0.02; done`;
  stream.call({ tool: "exec", params: { argv: ["bash", "-c", script] }, callId });
  await stream.next(printedIn);
  const over = stream.end().catch(() => undefined);
  await postgres.kill();
  await rm(mark);
  const meanwhile = await operators[0].registry
    .callTool({ tool: "exec", params: { argv: ["uname"] } })
    .catch((error: unknown) => error);
  expect(meanwhile).toBeInstanceOf(Error);
  await postgres.restart();
  const call = await ended();
  expect([CallState.SUCCEEDED, CallState.UNKNOWN]).toContain(call.status.state);
  expect(call.status.state === CallState.UNKNOWN ? call.status.error?.reason : undefined).not.toBe(
    ErrorReason.INTERNAL,
  );
  expect(await readFile(`${mark}.runs`, "utf8")).toBe("run\n");
  await over;
  const after = await eventually(() => operators[0].registry.callTool({ tool: "exec", params: { argv: ["uname"] } }));
  expect(after.call?.status?.state).toBe(CallState.SUCCEEDED);
});
