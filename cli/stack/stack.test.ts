import { mkdtemp, realpath, rm } from "node:fs/promises";
import { connect as connectH2 } from "node:http2";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { registryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { Mode } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { createLogger } from "../../lib/log/log.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { issueFirstTokens } from "./first-tokens.ts";
import { type Stack, startStack } from "./stack.ts";

let folder: string;
let stack: Stack;
let tokens: { operator: string; agent: string };
beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-stack-")));
  stack = await startStack({
    dataDir: join(folder, "data"),
    ports: { registry: 0, policy: 0, device: 0 },
    deviceName: "box",
    mode: Mode.ALL,
    readRoots: [],
    writeRoots: [],
    devices: { host: "127.0.0.1", port: 0 },
    env: process.env,
    logger: createLogger({ service: "test", level: "silent" }),
  });
  const issued = issueFirstTokens(stack.tokens);
  if (issued === undefined) throw new Error("the folder is not new");
  tokens = issued;
});
afterAll(async () => {
  await stack.close();
  await rm(folder, { recursive: true, force: true });
});

describe("the port for devices of other machines", () => {
  const ask = async (method: string, path: string, token?: string) => {
    // As anybody on the network: without a certificate, and not caring whose the server's is.
    const session = connectH2(stack.attachUrl ?? "", { rejectUnauthorized: false });
    const headers = { ":method": method, ":path": path, "content-type": "application/json" };
    const stream = session.request({ ...headers, ...(token !== undefined && { authorization: `Bearer ${token}` }) });
    const status = new Promise<number | undefined>((resolve) => {
      stream.on("response", (head) => resolve(head[":status"]));
    });
    stream.end(method === "POST" ? "{}" : undefined);
    const answer = [await status, await text(stream)] as const;
    session.close();
    return answer;
  };

  test.each(["/metrics", "/healthz", "/readyz", "/livez", "/tools", "/calls/x"])("has no %s", async (path) => {
    expect((await ask("GET", path))[0]).toBe(404);
  });

  test.each([
    "grpc.health.v1.Health/Check",
    "grpc.reflection.v1.ServerReflection/ServerReflectionInfo",
    "reeve.tool.v1.ToolService/ListTools",
    "reeve.enrollment.v1.EnrollmentService/CreateJoinToken",
    "reeve.tools.v1.Shell/Exec",
  ])("does not serve %s", async (rpc) => {
    expect((await ask("POST", `/${rpc}`))[0]).toBe(404);
    expect((await ask("POST", `/${rpc}`, tokens.operator))[0]).toBe(401);
  });

  test("takes an operator's token for nothing that it does serve", async () => {
    expect((await ask("POST", "/reeve.enrollment.v1.EnrollmentService/RenewCertificate", tokens.operator))[0]).toBe(
      401,
    );
    expect((await ask("POST", "/reeve.enrollment.v1.EnrollmentService/Join"))[0]).toBe(400);
  });
});

test("metrics count devices, of calls by tool, decision and end, and of approvals that wait", async () => {
  const transport = createServiceTransport({ baseUrl: stack.registryUrl, token: tokens.agent });
  const client = registryClient(transport);
  const ping = await client.callTool({ tool: "device.ping", params: { text: "hi" } });
  expect(ping.call?.status?.state).toBe(CallState.SUCCEEDED);
  await client.callTool({ tool: "exec", params: { argv: ["touch", "x"] }, noWait: true });
  transport.close();
  const metrics = async (url: string) => (await fetch(`${url}/metrics`)).text();
  const registry = await metrics(stack.registryUrl);
  expect(registry).toMatch(/^reeve_devices_linked 1$/m);
  expect(registry).toMatch(/^reeve_calls_open 1$/m);
  expect(registry).toMatch(/^reeve_policy_unavailable 0$/m);
  expect(registry).toMatch(/^reeve_calls_total\{tool="device.ping",decision="permit",state="succeeded"\} 1$/m);
  expect(registry).toMatch(/^reeve_outbox_waiting \d+$/m);
  expect(await metrics(stack.policyUrl)).toMatch(/^reeve_approvals_pending 1$/m);
  expect(await metrics(stack.deviceUrl)).toMatch(/^reeve_device_calls_open 0$/m);
});
