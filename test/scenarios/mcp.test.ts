import { existsSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ApprovalState } from "../../gen/ts/reeve/approval/v1/approval_pb.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { Ingress } from "../../gen/ts/reeve/common/v1/ingress_pb.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { callerOf } from "../../testkit/clients.ts";
import { eventually } from "../../testkit/eventually.ts";
import { MCP_CLIENTS, type McpClient, type McpClientName, STDIO_CLIENTS } from "../../testkit/mcp-clients.ts";
import { type RawMcp, rawHttp, rawStdio } from "../../testkit/mcp-raw.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

let plane: TestStack;
let count = 0;

beforeAll(async () => {
  plane = await startTestStack();
});
afterAll(() => plane.close());

const operator = () => callerOf(plane, plane.tokens.operator);
const newFile = () => join(plane.workFolder, `mcp-${++count}`);
const callOf = async (callId: string) => (await operator().registry.getCall({ callId })).call;

const NAMES = Object.keys(MCP_CLIENTS) as McpClientName[];
const CLIENTS = [
  ...NAMES.map((name) => ({
    name: `${name}, over HTTP`,
    connect: () => MCP_CLIENTS[name](plane.registry.url, plane.tokens.agent),
  })),
  ...NAMES.map((name) => ({
    name: `${name}, over standard input and output`,
    connect: () => STDIO_CLIENTS[name]({ REEVE_DATA_DIR: plane.dataFolder, REEVE_AGENT_TOKEN: plane.tokens.agent }),
  })),
];

describe.each(CLIENTS)("a client of the $name", ({ connect }) => {
  let agent: McpClient;
  beforeAll(async () => {
    agent = await connect();
  });
  afterAll(() => agent.close());

  test("lists the tools, with what their definitions say of them", async () => {
    const tools = await agent.list();
    const names = tools.map((tool) => tool.name);
    expect(names).toEqual(expect.arrayContaining(["exec", "fs_read", "device_ping", "call_result", "call_cancel"]));
    const read = tools.find((tool) => tool.name === "fs_read");
    expect(read?.description).toContain("[device_mesh: fs.read]");
    expect(read?.annotations).toMatchObject({ readOnlyHint: true, destructiveHint: false });
    expect(read?.inputSchema).toMatchObject({ type: "object", required: expect.arrayContaining(["path"]) as unknown });
    expect(read?.outputSchema).toMatchObject({ type: "object" });
    expect(JSON.stringify(tools)).not.toContain("x-reeve-");
    for (const { inputSchema } of tools) expect(Object.keys(Object(inputSchema.properties))).not.toContain("device");
  });

  test("calls a tool: structured content with the same as text", async () => {
    const { isError, structured, text, callId } = await agent.use("device_ping", {});
    expect([isError, text]).toEqual([false, JSON.stringify(structured)]);
    const call = await callOf(callId);
    expect(call).toMatchObject({
      spec: { tool: "device.ping", ingress: Ingress.LLM },
      status: { state: CallState.SUCCEEDED },
    });
    expect(call?.spec?.client).toMatch(/^mcp/);
  });

  test("reads what is wrong with its arguments, by field", async () => {
    const { isError, text } = await agent.use("fs_read", { path: 7 });
    expect(isError).toBe(true);
    expect(text).toContain("path");
    expect(text).toContain("error: invalid_input");
  });

  test("reads which tools there are", async () => {
    const { isError, text } = await agent.use("fs_raed", {});
    expect(isError).toBe(true);
    expect(text).toMatch(/^error: unknown_tool: no tool "fs_raed"\navailable: .*fs_read/);
  });

  test("is denied what is denied", async () => {
    const { isError, text, callId } = await agent.use("fs_read", { path: "/etc/shadow" });
    expect(isError).toBe(true);
    expect(text).toMatch(/^error: policy_denied/);
    expect((await callOf(callId))?.status?.state).toBe(CallState.DENIED);
  });

  test("waits for a person, is notified of it, and gets the end", async () => {
    const file = newFile();
    const messages: string[] = [];
    const using = agent.use("exec", { argv: ["touch", file] }, { onProgress: (message) => messages.push(message) });
    const { id, spec } = await eventually(() => heldApproval("exec", file));
    await eventually(async () => expect(messages.join("\n")).toContain(id));
    await approveCall(operator(), spec?.callId ?? "");
    const { isError, structured } = await using;
    expect([isError, structured?.exit_code ?? structured?.exitCode ?? 0]).toEqual([false, 0]);
    expect(existsSync(file)).toBe(true);
  });

  test("gets the output as it comes", async () => {
    const messages: string[] = [];
    const mark = newFile();
    const argv = ["bash", "-c", `echo one; sleep 1; echo two; : ${mark}`];
    const using = agent.use("exec", { argv }, { onProgress: (message) => messages.push(message) });
    const { spec } = await eventually(() => heldApproval("exec", mark));
    await approveCall(operator(), spec?.callId ?? "");
    expect((await using).isError).toBe(false);
    expect(messages.join("\n")).toContain("one\n");
  });

  test("cancels what it has called", async () => {
    const file = newFile();
    const canceled = new AbortController();
    const using = agent.use("exec", { argv: ["touch", file] }, { signal: canceled.signal });
    const { spec } = await eventually(() => heldApproval("exec", file));
    canceled.abort();
    await expect(using).rejects.toThrow();
    const callId = spec?.callId ?? "";
    await eventually(async () => expect((await callOf(callId))?.status?.state).toBe(CallState.CANCELED));
  });

  test("asks the same again while it is held: it is that call", async () => {
    const file = newFile();
    const first = agent.use("exec", { argv: ["touch", file] });
    const { spec } = await eventually(() => heldApproval("exec", file));
    const messages: string[] = [];
    const second = agent.use("exec", { argv: ["touch", file] }, { onProgress: (message) => messages.push(message) });
    await eventually(() => expect(messages).not.toEqual([]));
    await approveCall(operator(), spec?.callId ?? "");
    const ids = (await Promise.all([first, second])).map(({ callId }) => callId);
    expect(ids).toEqual([spec?.callId, spec?.callId]);
  });

  test("asks the same twice at one instant: it is one call", async () => {
    const file = newFile();
    const using = [1, 2, 3].map(() => agent.use("exec", { argv: ["touch", file] }));
    const { spec } = await eventually(() => heldApproval("exec", file));
    await approveCall(operator(), spec?.callId ?? "");
    const ids = (await Promise.all(using)).map(({ callId }) => callId);
    expect(ids).toEqual([spec?.callId, spec?.callId, spec?.callId]);
  });

  test("cancels its second request for the same, and the first goes on", async () => {
    const file = newFile();
    const first = agent.use("exec", { argv: ["touch", file] });
    const { spec } = await eventually(() => heldApproval("exec", file));
    const canceled = new AbortController();
    const messages: string[] = [];
    const options = { signal: canceled.signal, onProgress: (message: string) => messages.push(message) };
    const second = agent.use("exec", { argv: ["touch", file] }, options);
    await eventually(() => expect(messages).not.toEqual([]));
    canceled.abort();
    await expect(second).rejects.toThrow();
    const callId = spec?.callId ?? "";
    await sleep(300);
    expect((await callOf(callId))?.status?.state).toBe(CallState.HELD);
    await approveCall(operator(), callId);
    expect((await first).isError).toBe(false);
    expect(existsSync(file)).toBe(true);
  });

  test("looks at its own calls only", async () => {
    const { callId } = await agent.use("device_ping", {});
    const own = await agent.use("call_result", { call_id: callId, wait_seconds: 1 });
    expect([own.isError, own.callId]).toEqual([false, callId]);
    const { call } = await operator().registry.callTool({ tool: "device.ping" });
    const other = await agent.use("call_result", { call_id: call?.id });
    expect([other.isError, other.text]).toEqual([true, expect.stringContaining("error: not_found")]);
    expect((await agent.use("call_cancel", { call_id: call?.id })).text).toContain("error: not_found");
    expect((await agent.use("call_result", { call_id: callId, wait: 1 })).text).toContain("error: invalid_input");
  });

  test("reads its own calls and their approvals, and those of no other principal", async () => {
    const file = newFile();
    const { callId } = await agent.use("device_ping", {});
    const used = agent.use("exec", { argv: ["touch", file] });
    const { id: approval, spec } = await eventually(() => heldApproval("exec", file));
    const heldId = spec?.callId ?? "";
    expect(await agent.templates()).toEqual(["reeve://calls/{call_id}", "reeve://approvals/{approval_id}"]);
    const own = [`reeve://calls/${heldId}`, `reeve://approvals/${approval}`, `reeve://calls/${callId}`];
    await eventually(async () => {
      const { uris } = await agent.resources();
      expect(uris.filter((uri) => own.includes(uri))).toEqual(own);
    });
    expect(await agent.read(`reeve://calls/${callId}`)).toMatchObject({ tool: "device.ping", state: "succeeded" });
    expect(await agent.read(`reeve://calls/${heldId}`)).toMatchObject({
      state: "held",
      arguments: { argv: ["touch", file] },
      approval: `reeve://approvals/${approval}`,
      message: expect.stringMatching(/^held: a person has to decide/) as unknown,
    });
    const pending = await agent.read(`reeve://approvals/${approval}`);
    expect(pending).toMatchObject({ state: "pending", call: `reeve://calls/${heldId}` });
    // Reading has run nothing.
    expect(existsSync(file)).toBe(false);
    await approveCall(operator(), heldId);
    expect((await used).isError).toBe(false);
    expect(await agent.read(`reeve://approvals/${approval}`)).toMatchObject({
      state: "decided",
      call_state: "succeeded",
    });

    const { call } = await operator().registry.callTool({ tool: "device.ping" });
    const refusal = (id = "") =>
      agent.read(`reeve://calls/${id}`).then(JSON.stringify, ({ message }: Error) => message);
    const others = await refusal(call?.id);
    expect(others).toContain("Resource not found");
    expect(others.replaceAll(call?.id ?? "", "none")).toBe(await refusal("none"));
    expect((await agent.resources()).uris).not.toContain(`reeve://calls/${call?.id}`);
    await expect(agent.read("reeve://approvals/apr-none")).rejects.toThrow("Resource not found");
    await expect(agent.resources("nowhere")).rejects.toThrow();
  });

  test("calls 64 at once", async () => {
    const answers = await Promise.all(Array.from({ length: 64 }, () => agent.use("device_ping", {})));
    expect(answers.every(({ isError }) => !isError)).toBe(true);
    expect(new Set(answers.map(({ callId }) => callId)).size).toBe(64);
  });
});

async function heldApproval(tool: string, word: string) {
  const { approvals } = await operator().approvals.listApprovals({ state: ApprovalState.PENDING });
  const found = approvals.find(({ spec }) => spec?.tool === tool && JSON.stringify(spec.arguments).includes(word));
  if (found === undefined) throw new Error(`no approval of ${tool} ${word}`);
  return found;
}

test("is held whatever token it has: a model may not use a person's rights", async () => {
  const file = newFile();
  const owner = await MCP_CLIENTS["SDK v1, 2025-11-25"](plane.registry.url, plane.tokens.operator);
  const canceled = new AbortController();
  const using = owner.use("exec", { argv: ["touch", file] }, { signal: canceled.signal }).catch(() => undefined);
  const { spec } = await eventually(() => heldApproval("exec", file));
  canceled.abort();
  await using;
  expect(existsSync(file)).toBe(false);
  await eventually(async () => expect((await callOf(spec?.callId ?? ""))?.status?.state).toBe(CallState.CANCELED));
  await owner.close();
});

describe("the path", () => {
  const post = (body: string, headers: Record<string, string> = {}) =>
    fetch(`${plane.registry.url}/mcp`, {
      method: "POST",
      headers: {
        "content-type": "application/json",
        accept: "application/json, text/event-stream",
        authorization: `Bearer ${plane.tokens.agent}`,
        ...headers,
      },
      body,
    });
  const list = JSON.stringify({ jsonrpc: "2.0", id: 1, method: "tools/list", params: {} });

  test("is for those with a token", async () => {
    const response = await fetch(`${plane.registry.url}/mcp`, { method: "POST", body: list });
    expect([response.status, response.headers.get("www-authenticate")]).toEqual([401, "Bearer"]);
    const refused = await post(list, { authorization: "Bearer rv_nobody" });
    expect([refused.status, refused.headers.get("www-authenticate")]).toEqual([401, 'Bearer error="invalid_token"']);
  });

  test("is for no page of somewhere else, and for tools of this machine", async () => {
    expect((await post(list, { origin: "https://example.com" })).status).toBe(403);
    expect((await post(list, { origin: "null" })).status).toBe(403);
    expect((await post(list, { origin: "http://localhost:6274" })).status).toBe(200);
  });

  test("takes one JSON message at a time, and nothing else", async () => {
    expect(await (await post("{")).json()).toMatchObject({ error: { code: -32700 } });
    expect((await post('{"jsonrpc":"2.0","jsonrpc":"2.0","id":1,"method":"tools/list"}')).status).toBe(400);
    const got = await fetch(`${plane.registry.url}/mcp`, {
      headers: { authorization: `Bearer ${plane.tokens.agent}` },
    });
    expect([got.status, got.headers.get("allow")]).toEqual([405, "POST"]);
  });
});

describe.each(["over HTTP", "over standard input and output"])("a client that takes tasks, %s", (how) => {
  const CAPABILITIES = { extensions: { "io.modelcontextprotocol/tasks": {} } };
  let exchange: RawMcp;
  let id = 0;
  beforeAll(async () => {
    exchange =
      how === "over HTTP"
        ? rawHttp(plane.registry.url, plane.tokens.agent)
        : await rawStdio({ REEVE_DATA_DIR: plane.dataFolder, REEVE_AGENT_TOKEN: plane.tokens.agent });
  });
  afterAll(() => exchange.close());
  const send = (method: string, params: Record<string, unknown>, capabilities: object = CAPABILITIES) => {
    const _meta = {
      "io.modelcontextprotocol/protocolVersion": "2026-07-28",
      "io.modelcontextprotocol/clientInfo": { name: "tasks", version: "1.0.0" },
      "io.modelcontextprotocol/clientCapabilities": capabilities,
    };
    return exchange.send({ jsonrpc: "2.0", id: ++id, method, params: { ...params, _meta } });
  };
  const hold = async () => {
    const file = newFile();
    const { result } = await send("tools/call", { name: "exec", arguments: { argv: ["touch", file] } });
    return { file, taskId: String(result?.taskId), result };
  };

  test("gets one for a call that is held, and its end from there", async () => {
    const { file, taskId, result } = await hold();
    expect(result).toMatchObject({ resultType: "task", status: "working" });
    expect(result?.statusMessage).toMatch(/approval apr-/);
    expect((await callOf(taskId))?.status?.state).toBe(CallState.HELD);
    await approveCall(operator(), taskId);
    const ended = await eventually(async () => {
      const { result: task } = await send("tasks/get", { taskId });
      return task?.status === "working" ? Promise.reject(new Error("it works")) : task;
    });
    expect(ended).toMatchObject({ status: "completed", result: { resultType: "complete" } });
    expect(existsSync(file)).toBe(true);
  });

  test("cancels it", async () => {
    const { file, taskId } = await hold();
    expect((await send("tasks/cancel", { taskId })).error).toBeUndefined();
    expect((await send("tasks/get", { taskId })).result).toMatchObject({ status: "cancelled" });
    expect((await callOf(taskId))?.status?.state).toBe(CallState.CANCELED);
    expect(existsSync(file)).toBe(false);
  });

  test("reads that a person has denied it", async () => {
    const { taskId } = await hold();
    const { id: approvalId } = await eventually(() => heldApproval("exec", `mcp-${count}`));
    await operator().approvals.deny({ approvalId, comment: "not today", channel: "test" });
    const denied = await eventually(async () => {
      const { result } = await send("tasks/get", { taskId });
      return result?.status === "working" ? Promise.reject(new Error("it works")) : result;
    });
    expect(denied).toMatchObject({ status: "completed", result: { isError: true } });
    expect(JSON.stringify(denied)).toContain("not today");
  });

  test("gets a result at once for what is not held", async () => {
    const { result } = await send("tools/call", { name: "device_ping", arguments: {} });
    expect(result).toMatchObject({ structuredContent: {} });
    expect(result?.resultType).not.toBe("task");
  });

  test("knows no tasks of others, and has to say that it takes them", async () => {
    const { call } = await operator().registry.callTool({ tool: "device.ping" });
    expect((await send("tasks/get", { taskId: call?.id })).error?.code).toBe(-32602);
    expect((await send("tasks/get", { taskId: call?.id }, {})).error?.code).toBe(-32021);
  });
});
