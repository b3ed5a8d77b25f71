import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { toJsonString } from "@bufbuild/protobuf";
import { afterAll, beforeAll, expect, test } from "vitest";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { CallToolResponseSchema } from "../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { startWebServer, type WebServer } from "../../services/device-agent/tools/testing/web-server.ts";
import { runReeve, shellOf } from "../../testkit/cli.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { eventually } from "../../testkit/eventually.ts";

const VALUE = "syt_0123456789abcdef";
const HANDLE = ["$", "{secret:MATRIX}"].join("");

let home: string;
let server: WebServer;
let plane: ControlPlane;
let agent: Caller;
let operator: Caller;
beforeAll(async () => {
  home = await mkdtemp(join(tmpdir(), "reeve-test-"));
  server = await startWebServer(({ path, body }, response) => {
    if (path.startsWith("/_matrix/")) response.end(JSON.stringify({ event_id: "$1" }));
    else response.end(`${path} ${body} ${server.asked.at(-1)?.headers.authorization ?? "without a token"}`);
  });
  plane = await startControlPlane({ deviceEnv: { REEVE_DEVICE_HOSTS: `127.0.0.1:${server.port}` } });
  agent = callerOf(plane, plane.tokens.agent);
  operator = callerOf(plane, plane.tokens.operator);
  const env = { ...shellOf(plane, plane.tokens.operator, home), REEVE_DEVICE_STATE_DIR: plane.device().stateDir };
  const kept = await runReeve(["secret", "set", "MATRIX", "--host", "127.0.0.1"], env, `${VALUE}\n`);
  if (kept.code !== 0) throw new Error(kept.stderr);
});
afterAll(async () => {
  await plane.close();
  await server[Symbol.asyncDispose]();
  await rm(home, { recursive: true });
});

const statusOf = async (caller: Caller, tool: string, params: Record<string, string | Record<string, string>>) =>
  (await caller.registry.callTool({ tool, params })).call?.status;

test("an agent gets what a named host has, and nothing of another one", async () => {
  const found = await statusOf(agent, "http.get", { url: `${server.origin}/page` });
  expect(found).toMatchObject({ state: CallState.SUCCEEDED });
  expect(JSON.stringify(found?.output)).toContain("/page  without a token");
  const refused = await statusOf(agent, "http.get", { url: "http://169.254.169.254/latest/meta-data/" });
  expect(refused?.error?.reason).toBe(ErrorReason.HOST_NOT_GRANTED);
});

test("a secret goes with a request that a person approved, and nowhere else", async () => {
  const params = { url: `${server.origin}/mine`, headers: { authorization: `Bearer ${HANDLE}` } };
  const held = await agent.registry.callTool({ tool: "http.get", params, noWait: true });
  const { id = "", status } = held.call ?? {};
  expect(status?.state).toBe(CallState.HELD);
  const approvalId = status?.approval?.id ?? "";
  const { approval } = await operator.approvals.getApproval({ approvalId });
  expect(approval?.spec?.summary).toContain("secret:MATRIX");
  await operator.approvals.approve({ approvalId, summaryDigest: approval?.spec?.summaryDigest ?? "" });
  const answer = await eventually(async () => {
    const { call } = await operator.registry.getCall({ callId: id });
    expect(call?.status?.state).toBe(CallState.SUCCEEDED);
    return call;
  });
  expect(server.asked.at(-1)?.headers.authorization).toBe(`Bearer ${VALUE}`);
  expect(JSON.stringify(answer?.status?.output)).toContain("Bearer [redacted]");
});

test("an operator sends a message, which a repeated call does not send again", async () => {
  const callId = "matrix-once";
  const params = { homeserver: server.origin, accessToken: HANDLE, roomId: "!a:example.org", text: "done" };
  for (const _ of [1, 2]) {
    const sent = await operator.registry.callTool({ tool: "matrix.send", params, callId });
    expect(toJsonString(CallToolResponseSchema, sent)).toContain("$1");
  }
  expect(server.asked.filter(({ method }) => method === "PUT")).toHaveLength(1);
});

test("what a secret holds stands in no file of the control plane or the device", async () => {
  await operator.audit.listRecords({});
  const files = (await readdir(plane.folder, { recursive: true, withFileTypes: true })).filter((one) => one.isFile());
  expect(files.length).toBeGreaterThan(5);
  for (const { parentPath, name } of files)
    expect([name, (await readFile(join(parentPath, name))).includes(VALUE)]).toEqual([name, false]);
});
