import { randomBytes } from "node:crypto";
import { existsSync, mkdirSync, writeFileSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create, type JsonObject } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { type CompleteCall, completeCall } from "../../client/complete-call.ts";
import { registryClient } from "../../client/registry.ts";
import { CallState } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { MissingReason } from "../../gen/ts/reeve/capability/v1/capability_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { AnnouncedToolsSchema } from "../../gen/ts/reeve/device/v1/manifest_pb.ts";
import { Risk } from "../../gen/ts/reeve/options/v1/capability_pb.ts";
import { Scope } from "../../gen/ts/reeve/options/v1/tool_pb.ts";
import { faultDetail } from "../../lib/fault/fault.ts";
import { createServiceTransport } from "../../lib/rpc-client/transport.ts";
import { loadToolset } from "../../services/agent/toolset/toolset.ts";
import type { ProvidedTools, ToolProvider } from "../../services/device-agent/providers/provider.ts";
import { deviceTool } from "../../services/device-agent/tools/tool.ts";
import { DEFAULT_POLICY_FILE } from "../../services/policy/rules/default-policy.ts";
import { approveCall } from "../../testkit/approvals.ts";
import { runReeve } from "../../testkit/cli.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { eventually } from "../../testkit/eventually.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

const RULES = `
  - id: weather/look
    effect: allow
    tools: ["weather:*"]
    message: Looking at the weather changes nothing.
    match:
      - { tool: { name: "weather:now", read_only: true } }
`;

const SCHEMA: JsonObject = {
  type: "object",
  properties: { city: { type: "string", minLength: 1 }, token: { type: "string", writeOnly: true } },
  required: ["city"],
  additionalProperties: false,
};

/** A provider of tools that JSON Schemas define, whose list the test changes. */
function createWeather() {
  const listeners = new Set<() => void>();
  const asked: JsonObject[] = [];
  let names = ["now"];
  const provider: ToolProvider = {
    provided(): ProvidedTools {
      const tools = names.map((name) => ({
        ...{ name, description: "The weather of a city.", scope: Scope.USER, readOnly: true },
        inputSchema: JSON.stringify(SCHEMA),
      }));
      const definition = create(AnnouncedToolsSchema, {
        name: "weather",
        definition: { case: "schemas", value: { tools } },
      });
      const implement: ProvidedTools["announced"][number]["implement"] = ({ spec, codec }) =>
        deviceTool(spec, codec, async (input) => {
          asked.push(input as JsonObject);
          return { sky: "clear" };
        });
      return { tools: [], known: [], unavailable: [], announced: [{ definition, implement }] };
    },
    onChange(listener) {
      listeners.add(listener);
      return () => listeners.delete(listener);
    },
    [Symbol.dispose]: () => undefined,
  };
  return {
    provider,
    asked,
    offer(...changed: string[]) {
      names = changed;
      for (const listener of listeners) listener();
    },
  };
}

const weather = createWeather();
let folder: string;
let stack: TestStack;
let operator: Caller;
let agent: Caller;
let callId: string;

beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-test-"));
  const policyFile = join(folder, "policy.yaml");
  await writeFile(policyFile, (await readFile(DEFAULT_POLICY_FILE, "utf8")) + RULES);
  stack = await startTestStack({ policyFile, providers: [weather.provider] });
  operator = callerOf(stack, stack.tokens.operator);
  agent = callerOf(stack, stack.tokens.agent);
});
afterAll(async () => {
  await stack.close();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  callId = `tools-${randomBytes(6).toString("hex")}`;
});

async function call(caller: Caller, tool: string, params: JsonObject): Promise<CompleteCall> {
  const { call } = await caller.registry.callTool({ tool, params, callId, noWait: caller === operator });
  if (call === undefined) throw new Error("no call");
  return completeCall(call);
}

/** How many records of the audit log name a tool. */
async function recordsOf(tool: string): Promise<number> {
  const { entries } = await operator.audit.listRecords({ pageSize: 1000 });
  return entries.filter(({ leaf }) => Buffer.from(leaf).includes(tool)).length;
}

async function invoke(tool: string, params: JsonObject): Promise<{ status: number; body: { status: JsonObject } }> {
  const response = await fetch(`${stack.registry.url}/invoke`, {
    method: "POST",
    headers: { authorization: `Bearer ${stack.tokens.agent}`, "content-type": "application/json" },
    body: JSON.stringify({ tool, params, callId, noWait: true }),
  });
  return { status: response.status, body: (await response.json()) as { status: JsonObject } };
}

async function toolsForModel() {
  const client = registryClient(createServiceTransport({ baseUrl: stack.registry.url, token: stack.tokens.agent }));
  return (await loadToolset(client)).tools;
}

describe("fs.delete, which is a proto and one file", () => {
  let victim: string;
  beforeEach(() => {
    victim = join(stack.workFolder, callId);
    mkdirSync(victim);
    writeFileSync(join(victim, "a"), "a");
  });

  test("is a tool for a model, with its schema", async () => {
    const tool = (await toolsForModel()).find(({ name }) => name === "fs.delete");
    expect(tool?.inputSchema).toMatchObject({
      properties: { path: {}, recursive: { type: "boolean" } },
      required: ["path"],
    });
  });

  test("waits for a person through its annotation alone, runs with a grant and is on record", async () => {
    const held = await call(operator, "fs.delete", { path: victim, recursive: true });
    expect(held.status.state).toBe(CallState.HELD);
    expect(existsSync(victim)).toBe(true);
    await approveCall(operator, callId);
    await eventually(() => expect(existsSync(victim)).toBe(false));
    await eventually(async () => {
      const { call: ended } = await operator.registry.getCall({ callId });
      expect(ended).toMatchObject({ status: { state: CallState.SUCCEEDED, output: { deleted: "2" } } });
      expect(ended?.status?.receipt).toBeDefined();
    });
    await eventually(async () => expect(await recordsOf("fs.delete")).toBeGreaterThan(0));
  });

  test("has flags on the command line", async () => {
    const ran = runReeve(
      ["call", "this", "fs.delete", "--path", victim, "--recursive", "--call-id", callId],
      stack.operator,
    );
    await approveCall(operator, callId);
    const { code, stderr } = await ran;
    expect(code, stderr).toBe(0);
    expect(existsSync(victim)).toBe(false);
  });

  test("is held over HTTP, and refuses a granted folder though it is approved", async () => {
    const { status, body } = await invoke("fs.delete", { path: stack.workFolder, recursive: true });
    expect([status, body.status.state]).toEqual([202, "CALL_STATE_HELD"]);
    await approveCall(operator, callId);
    await eventually(async () => {
      const { calls } = await operator.registry.listCalls({ pageSize: 20 });
      const ended = calls.find(({ id }) => id === callId || id.startsWith(`${callId}-`));
      expect(ended).toMatchObject({
        status: { state: CallState.FAILED, error: { reason: ErrorReason.PATH_OUTSIDE_ROOTS } },
      });
    });
    expect(existsSync(victim)).toBe(true);
  });
});

describe("a tool that a JSON Schema defines, from a provider", () => {
  test("is a tool for a model, with its schema", async () => {
    const tool = (await toolsForModel()).find(({ name }) => name === "weather:now");
    expect(tool?.inputSchema).toEqual(SCHEMA);
  });

  test("runs with a grant and a receipt, and is on record without its secret", async () => {
    const ended = await call(agent, "weather:now", { city: "Bern", token: "s3cret" });
    expect(ended).toMatchObject({ status: { state: CallState.SUCCEEDED, output: { sky: "clear" } } });
    expect(ended.status.receipt).toBeDefined();
    expect(weather.asked).toContainEqual({ city: "Bern", token: "s3cret" });
    await eventually(async () => expect(await recordsOf("weather:now")).toBeGreaterThan(0));
  });

  test("names the field that breaks its schema", async () => {
    const error: unknown = await call(agent, "weather:now", { city: "", planet: "x" }).catch(
      (thrown: unknown) => thrown,
    );
    expect(faultDetail(error)?.reason).toBe(ErrorReason.INVALID_INPUT);
    expect(faultDetail(error)?.violations[0]?.field).toMatch(/^params\.(city|planet)$/);
  });

  test("has flags on the command line, and runs over HTTP", async () => {
    const ran = await runReeve(["call", "this", "weather:now", "--city", "Chur"], stack.operator);
    expect(ran.code, ran.stderr).toBe(0);
    expect(weather.asked).toContainEqual({ city: "Chur" });
    expect((await invoke("weather:now", { city: "Thun" })).status).toBeLessThan(300);
    await eventually(() => expect(weather.asked).toContainEqual({ city: "Thun" }));
  });

  test("comes and goes while the device runs", async () => {
    weather.offer("now", "tomorrow");
    await eventually(async () =>
      expect((await agent.registry.getTool({ tool: "weather:tomorrow" })).tool).toBeDefined(),
    );
    await eventually(async () =>
      expect(await call(agent, "weather:tomorrow", { city: "Bern" })).toMatchObject({
        status: { state: CallState.SUCCEEDED },
      }),
    );
    weather.offer("now");
    await eventually(async () => {
      const gone: unknown = await agent.registry.getTool({ tool: "weather:tomorrow" }).catch((error: unknown) => error);
      expect(faultDetail(gone)?.reason).toBe(ErrorReason.UNKNOWN_TOOL);
    });
  });
});

describe("capabilities", () => {
  test("are listed with what they allow, by any reader", async () => {
    const { capabilities } = await callerOf(stack, stack.tokens.agent).registry.listCapabilities({});
    expect(capabilities.find(({ name }) => name === "fs.delete")).toMatchObject({
      title: "Delete files",
      risk: Risk.HIGH,
      readOnly: false,
      destructive: true,
      tools: ["fs.delete", "fs.move"],
    });
    expect(capabilities.map(({ name }) => name)).not.toContain("weather:now");
  });

  test("of a device come with why one is missing, and with those that it announces", async () => {
    const { capabilities } = await agent.registry.listCapabilities({ device: "this" });
    expect(capabilities.find(({ name }) => name === "weather:now")?.availability).toMatchObject({ available: true });
    const { capability } = await agent.registry.getCapability({ name: "docker.container.exec", device: "this" });
    if (capability?.availability?.available === false)
      expect(capability.availability.reason).toBe(MissingReason.NOT_AVAILABLE);
    const none: unknown = await agent.registry.getCapability({ name: "none" }).catch((error: unknown) => error);
    expect(faultDetail(none)?.reason).toBe(ErrorReason.NOT_FOUND);
  });
});
