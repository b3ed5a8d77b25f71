import { mkdir, mkdtemp, readFile, realpath, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { JsonObject } from "@bufbuild/protobuf";
import { afterAll, beforeAll, beforeEach, describe, expect, test } from "vitest";
import { CallState, DecisionKind } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { SandboxLevel } from "../../gen/ts/reeve/device/v1/device_pb.ts";
import { repositoryRoot } from "../../scripts/repository-root.ts";
import { HAS_BWRAP } from "../../services/device-agent/testing/test-sandbox.ts";
import { DEFAULT_POLICY_FILE } from "../../services/policy/rules/default-policy.ts";
import { runReeve, shellOf } from "../../testkit/cli.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { eventually } from "../../testkit/eventually.ts";
import { GATE_WAYS } from "./one-gate.ways.ts";

/** What an owner adds to the policy for the two servers. */
const RULES = `
  - id: mcp/servers
    effect: allow
    tools: ["files:read_text_file", "files:list_directory", "every:echo", "every:get_sum", "every:trigger_*"]
    message: They change nothing.
    match:
      - { tool: { name: "every:echo" }, args: { message: x } }

  - id: mcp/odd
    effect: allow
    tools: ["odd:*"]
    when: '"operator" in principal.roles'
    message: Only for what goes wrong.
    match:
      - { tool: { name: "odd:die" }, principal: { roles: [operator] } }
`;

let folder: string;
let files: string;
let plugins: string;
let plane: ControlPlane;
let operator: Caller;
let callId: string;
let count = 0;
beforeAll(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-test-")));
  [files, plugins] = [join(folder, "files"), join(folder, "plugins")];
  await mkdir(files);
  await writeFile(join(files, "a.txt"), "what the file holds\n");
  await writePlugin("files", "server-filesystem", [files]);
  await writePlugin("every", "server-everything", ["stdio"]);
  await writeOddPlugin();
  const policyFile = join(folder, "policy.yaml");
  await writeFile(policyFile, (await readFile(DEFAULT_POLICY_FILE, "utf8")) + RULES);
  // The sandbox shows granted folders: these servers lie in the packages of this checkout. Not read-only, where files that are named
  // like secrets are hidden: some of those packages are.
  const roots = [files, join(repositoryRoot, "node_modules")].join(":");
  const deviceEnv = { REEVE_DEVICE_PLUGINS: plugins, REEVE_DEVICE_READ_ROOTS: roots };
  plane = await startControlPlane({ policyFile, deviceEnv });
  operator = callerOf(plane, plane.tokens.operator);
});
afterAll(async () => {
  await plane.close();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  count += 1;
  callId = `mcp-${count}`;
});

async function writePlugin(name: string, server: string, args: string[]): Promise<void> {
  const own = join(plugins, name);
  await mkdir(own, { recursive: true });
  const main = join(repositoryRoot, "node_modules", "@modelcontextprotocol", server, "dist", "index.js");
  const [command, permissionClass] = [process.execPath, HAS_BWRAP ? "workspace" : "host"];
  const declared = { command, args: [main, ...args], permission_class: permissionClass, concurrency_safe: true };
  await writeFile(join(own, "plugin.json"), JSON.stringify({ name, mcp_servers: { main: declared } }));
}

/** A server that does what none should. */
async function writeOddPlugin(): Promise<void> {
  const main = "services/device-agent/providers/plugin/mcp/testdata/odd-server.ts";
  const args = [join(repositoryRoot, main), folder];
  const odd = { command: process.execPath, args, permission_class: "host" };
  await mkdir(join(plugins, "odd"));
  await writeFile(join(plugins, "odd", "plugin.json"), JSON.stringify({ name: "odd", mcp_servers: { odd } }));
}

const reeve = (...words: string[]) =>
  runReeve(words, {
    ...shellOf(plane, plane.tokens.operator, folder),
    REEVE_DEVICE_PLUGINS: plugins,
    REEVE_DEVICE_STATE_DIR: plane.device().stateDir,
  });

async function offered(): Promise<string[]> {
  const { device } = await operator.registry.getDevice({ device: "this" });
  return (device?.tools ?? []).filter((name) => name.includes(":"));
}

async function states(): Promise<string[]> {
  const { plugins: listed } = JSON.parse((await reeve("plugin", "list", "--json")).stdout) as {
    plugins: { name: string; state: string }[];
  };
  return listed.map(({ name, state }) => `${name} ${state}`);
}

const NAMES = ["files", "every", "odd"];

describe("the MCP servers of plugins", () => {
  test("run once their plugins are accepted, and their tools are offered once these are", async () => {
    expect(await states()).toEqual(["every new", "files new", "odd new"]);
    for (const name of NAMES) {
      const first = await reeve("plugin", "accept", join(plugins, name));
      expect(first.code, first.stderr).toBe(0);
      expect(first.stderr).toMatch(/asks (?:main|odd) for tools now/);
    }
    await eventually(async () => expect(await states()).toEqual(["every listed", "files listed", "odd listed"]));
    expect(await offered()).toEqual([]);
    const { stdout } = await reeve("plugin", "list");
    expect(stdout).toMatch(/files:write_file, of main: .+\n {4}input {3}\{.+\n {4}claims {2}may destroy/);
    for (const name of NAMES) {
      const second = await reeve("plugin", "accept", join(plugins, name));
      expect(second.stdout).toContain(`new: ${name}:`);
    }
    expect(await states()).toEqual(["every accepted", "files accepted", "odd accepted"]);
    await eventually(async () => {
      const names = await offered();
      expect(names).toContain("files:read_text_file");
      expect(names).toContain("every:get_sum");
      expect(names.length).toBeGreaterThan(20);
    });
  });

  test("say what of them cannot be offered, and why", async () => {
    const { device } = await operator.registry.getDevice({ device: "this" });
    const why = device?.unavailable.find(({ tool }) => tool.startsWith("every:simulate"))?.why;
    expect(why).toContain("only be called as a task");
  });
});

const CALLS: readonly (readonly [tool: string, params: () => JsonObject, holds: RegExp])[] = [
  ["files:read_text_file", () => ({ path: join(files, "a.txt") }), /what the file holds/],
  ["every:get_sum", () => ({ a: 20, b: 22 }), /\b42\b/],
];

describe.each(CALLS)("a call of %s", (tool, params, holds) => {
  const GATES = GATE_WAYS.filter(({ name }) => name !== "a tool's own RPC");

  test.each(GATES)("by $name runs where it is permitted, on record", async ({ call }) => {
    const reported = await call(plane, { as: "agent", tool, params: params(), callId });
    expect(reported.text).toMatch(holds);
    const found = await callerOf(plane, plane.tokens.agent).registry.getCall({ callId: reported.callId });
    const sandbox = HAS_BWRAP ? SandboxLevel.WORKSPACE : SandboxLevel.NONE;
    expect(found.call?.status).toMatchObject({ state: CallState.SUCCEEDED, sandbox });
    const [decided, outcome] = await recordsOf(found.call?.id ?? "", 2);
    expect(decided).toMatchObject({ case: "decided", value: { decision: DecisionKind.PERMIT, tool } });
    expect(outcome).toMatchObject({ case: "outcome", value: { state: CallState.SUCCEEDED, tool } });
  });
});

describe("a call of a server's tool", () => {
  const GATES = GATE_WAYS.filter(({ name }) => name !== "a tool's own RPC");

  test.each(GATES)("by $name does not run where no rule permits it, on record", async ({ call }) => {
    const path = join(files, `written-${count}.txt`);
    const reported = await call(plane, {
      as: "agent",
      tool: "files:write_file",
      params: { path, content: "x" },
      callId,
    });
    const { registry } = callerOf(plane, plane.tokens.agent);
    const found = await registry.getCall({ callId: reported.callId }).catch(() => undefined);
    const records = await recordsOf(found?.call?.id ?? reported.callId, 1);
    const denial = { decision: DecisionKind.DENIAL, reason: ErrorReason.POLICY_DENIED, grantId: "" };
    expect(records).toMatchObject([{ case: "decided", value: denial }]);
    await expect(readFile(path)).rejects.toThrow("ENOENT");
  });

  test("at the command line takes its arguments as options, and prints what it returned", async () => {
    const { code, stdout, stderr } = await reeve("call", "this", "every:get_sum", "--a", "1", "--b", "2");
    expect(code, stderr).toBe(0);
    expect(stdout).toContain("3");
  });

  test("fails with the server's words where the server refuses", async () => {
    const { call } = await operator.registry.callTool({
      tool: "files:read_text_file",
      params: { path: "/etc/passwd" },
    });
    expect(call?.status).toMatchObject({ state: CallState.FAILED, error: { reason: ErrorReason.TOOL_FAILED } });
    expect(call?.status?.errorMessage).toContain("outside allowed directories");
  });

  test("that answers with escapes of a terminal shows none", async () => {
    const { call } = await operator.registry.callTool({ tool: "odd:escape" });
    expect(call?.status?.state).toBe(CallState.SUCCEEDED);
    const text = JSON.stringify(call?.status?.output);
    expect(text).toContain("red text");
    expect(text).not.toMatch(/\\u001b|\\u0007|title/);
    expect(await offered()).toContain("odd:escape");
  });

  test("that dies with it is unknown, on record, and is not sent again", async () => {
    const { call } = await operator.registry.callTool({ tool: "odd:die", callId });
    expect(call?.status).toMatchObject({ state: CallState.UNKNOWN, error: { reason: ErrorReason.INTERRUPTED } });
    expect(await readFile(join(folder, "died"), "utf8")).toMatch(/^\d+\n$/);
    const [, outcome] = await recordsOf(call?.id ?? "", 2);
    expect(outcome).toMatchObject({ case: "outcome", value: { state: CallState.UNKNOWN, tool: "odd:die" } });
    const again = await operator.registry.callTool({ tool: "odd:echo", params: { text: "back" } });
    expect(JSON.stringify(again.call?.status?.output)).toContain("back");
  });

  test("shows progress to who follows it", async () => {
    const tool = "every:trigger_long_running_operation";
    const { stderr } = await reeve("call", "this", tool, "--duration", "1", "--steps", "2");
    expect(stderr).toContain("1/2");
  });
});

/** What the records of a call say, once there are as many as there have to be. */
function recordsOf(id: string, atLeast: number) {
  return eventually(async () => {
    const { entries } = await operator.audit.listRecords({ callId: id });
    expect(entries.length).toBeGreaterThanOrEqual(atLeast);
    return entries.flatMap(({ record }) => record?.event ?? []);
  });
}
