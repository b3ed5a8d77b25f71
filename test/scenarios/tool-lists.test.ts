import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail, reasonOf } from "../../lib/fault/fault.ts";
import { loadToolset } from "../../services/agent/toolset/toolset.ts";
import { openCallStream } from "../../testkit/call-stream.ts";
import { runReeve } from "../../testkit/cli.ts";
import { callerOf } from "../../testkit/clients.ts";
import { MCP_CLIENTS, STDIO_CLIENTS } from "../../testkit/mcp-clients.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

let plane: TestStack;
let token: string;

beforeAll(async () => {
  plane = await startTestStack();
  const args = ["token", "create", "--name", "narrow", "--role", "agent", "--tool", "device.ping", "--tool", "fs.list"];
  token = (await runReeve(args, plane.operator)).stdout.trim();
});
afterAll(() => plane.close());

const caller = () => callerOf(plane, token);
const post = (path: string, body: object) =>
  fetch(plane.registry.url + path, {
    method: "POST",
    headers: { authorization: `Bearer ${token}`, "content-type": "application/json" },
    body: JSON.stringify(body),
  });

describe("a token that lists its tools", () => {
  const other = { tool: "fs.read", params: { path: "/etc/hosts" } };

  test("calls these, and no other by any face: the error names the tool and the list", async () => {
    const { registry, fanOut } = caller();
    expect((await registry.callTool({ tool: "device.ping" })).call?.status?.error).toBeUndefined();
    const refused = await registry.callTool(other).catch((error: unknown) => error);
    expect(reasonOf(refused)).toBe(ErrorReason.TOOL_NOT_ALLOWED);
    expect(faultDetail(refused)?.metadata).toEqual({ tool: "fs.read", allowed: "device.ping, fs.list" });

    const stream = openCallStream(registry);
    stream.call({ callId: "list-stream", ...other });
    const refusal = await stream.next(({ event }) => (event.case === "refusal" ? event.value : undefined));
    expect(refusal.error?.reason).toBe(ErrorReason.TOOL_NOT_ALLOWED);
    await stream.end();

    const fanned = await fanOut.startFanOut({ spec: { ...other, devices: ["this"] } }).catch((error: unknown) => error);
    expect(reasonOf(fanned)).toBe(ErrorReason.TOOL_NOT_ALLOWED);

    const invoked = await post("/invoke", other);
    expect([invoked.status, await invoked.json()]).toMatchObject([403, { reason: "tool_not_allowed" }]);
    const typed = await post("/reeve.tools.v1.FileSystem/Read", other.params);
    expect([typed.status, await typed.text()]).toEqual([403, expect.stringContaining("these tools")]);
  });

  test("is listed these, by every face", async () => {
    const { registry } = caller();
    const names = ["device.ping", "fs.list"];
    expect((await registry.listTools({})).tools.map(({ name }) => name)).toEqual(names);
    expect((await loadToolset(registry)).tools.map(({ name }) => name).toSorted()).toEqual(names);
    const refused = await registry.getTool({ tool: "fs.read" }).catch((error: unknown) => error);
    expect(reasonOf(refused)).toBe(ErrorReason.TOOL_NOT_ALLOWED);
    const headers = { authorization: `Bearer ${token}` };
    const listed = (await (await fetch(`${plane.registry.url}/tools`, { headers })).json()) as JsonObject;
    expect((listed.tools as JsonObject[]).map(({ name }) => name)).toEqual(names);
    expect((await registry.whoAmI({})).tools).toEqual(names);
  });

  test.each([
    ["over HTTP", () => MCP_CLIENTS["SDK v2, 2026-07-28"](plane.registry.url, token)],
    [
      "over standard input and output",
      () => STDIO_CLIENTS["SDK v1, 2025-11-25"]({ REEVE_DATA_DIR: plane.dataFolder, REEVE_AGENT_TOKEN: token }),
    ],
  ])("is an MCP client's %s", async (_how, connect) => {
    const client = await connect();
    try {
      const names = (await client.list()).map(({ name }) => name);
      expect(names).toEqual(["device_ping", "fs_list", "call_cancel", "call_result"]);
      const { isError, text } = await client.use("fs_read", other.params);
      expect([isError, text]).toEqual([true, expect.stringContaining("available: device_ping, fs_list")]);
      expect((await client.use("device_ping", {})).isError).toBe(false);
    } finally {
      await client.close();
    }
  });

  test("is shown with them, and refused a name that no tool can have", async () => {
    const { stdout } = await runReeve(["token", "list", "--json"], plane.operator);
    const { tokens } = JSON.parse(stdout) as { tokens: { name: string; tools: string[] | null }[] };
    expect(tokens.find(({ name }) => name === "narrow")?.tools).toEqual(["device.ping", "fs.list"]);
    expect(tokens.find(({ name }) => name === "agent")?.tools).toBeNull();
    const { code } = await runReeve(
      ["token", "create", "--name", "x", "--role", "agent", "--tool", "fs.*"],
      plane.operator,
    );
    expect(code).toBe(2);
  });
});

test("a token without a list calls what its roles and policy allow", async () => {
  const { registry } = callerOf(plane, plane.tokens.agent);
  expect((await registry.listTools({})).tools.length).toBeGreaterThan(10);
  expect((await registry.whoAmI({})).tools).toEqual([]);
});
