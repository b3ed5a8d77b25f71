import { chmod, cp, mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
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

/** What an owner adds to the policy for the plugins in examples/plugins. */
const RULES = `
  - id: plugins/load
    effect: allow
    tools: ["load:average"]
    message: Looking at the load changes nothing.
    match:
      - { tool: { name: "load:average", read_only: true } }

  - id: plugins/operator
    effect: allow
    tools: ["load:*", "text:*"]
    when: '"operator" in principal.roles'
    message: Operators may use the plugins.
    match:
      - { tool: { name: "text:count", read_only: true }, args: { text: x }, principal: { roles: [operator] } }
`;

const PLUGIN_FILES = ["load", "load/plugin.json", "text", "text/plugin.json", "text/count.py"];

let folder: string;
let plugins: string;
let plane: ControlPlane;
let operator: Caller;
let callId: string;
let count = 0;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-test-"));
  plugins = join(folder, "plugins");
  await cp(join(repositoryRoot, "examples", "plugins"), plugins, { recursive: true });
  // A checkout may be open to the group, which a device does not take.
  for (const path of PLUGIN_FILES) await chmod(join(plugins, path), path.endsWith(".json") ? 0o644 : 0o755);
  const policyFile = join(folder, "policy.yaml");
  await writeFile(policyFile, (await readFile(DEFAULT_POLICY_FILE, "utf8")) + RULES);
  plane = await startControlPlane({ policyFile, deviceEnv: { REEVE_DEVICE_PLUGINS: plugins } });
  operator = callerOf(plane, plane.tokens.operator);
});
afterAll(async () => {
  await plane.close();
  await rm(folder, { recursive: true });
});
beforeEach(() => {
  count += 1;
  callId = `plugin-${count}`;
});

const reeve = (...words: string[]) =>
  runReeve(words, {
    ...shellOf(plane, plane.tokens.operator, folder),
    REEVE_DEVICE_PLUGINS: plugins,
    REEVE_DEVICE_STATE_DIR: plane.device().stateDir,
  });

async function states(): Promise<Record<string, string>> {
  const { plugins: listed } = JSON.parse((await reeve("plugin", "list", "--json")).stdout) as {
    plugins: { name: string; state: string }[];
  };
  return Object.fromEntries(listed.map(({ name, state }) => [name, state]));
}

async function offered(): Promise<string[]> {
  const { device } = await operator.registry.getDevice({ device: "this" });
  return (device?.tools ?? []).filter((name) => name.includes(":"));
}

const whyNot = async (tool: string) =>
  (await operator.registry.getDevice({ device: "this" })).device?.unavailable.find((one) => one.tool === tool)?.why;

describe("the plugins of the examples", () => {
  test("are found, and not offered before their owner has accepted them", async () => {
    expect(await states()).toEqual({ load: "new", text: "new" });
    expect(await offered()).toEqual([]);
    expect(await whyNot("text")).toContain("was not accepted by the machine's owner");
    const answer = await operator.registry.callTool({ tool: "load:average", callId }).catch(() => undefined);
    expect(answer?.call?.status?.state).not.toBe(CallState.SUCCEEDED);
  });

  test("are accepted at the command line, and noticed by the device that runs", async () => {
    for (const name of ["load", "text"]) {
      const accepted = await reeve("plugin", "accept", join(plugins, name));
      expect(accepted.code, accepted.stderr).toBe(0);
      expect(accepted.stdout).toMatch(new RegExp(`^${name} 1\\.0\\.0, sha256 [0-9a-f]{64}\n`));
    }
    expect(await states()).toEqual({ load: "accepted", text: "accepted" });
    if (HAS_BWRAP) await eventually(async () => expect(await offered()).toEqual(["load:average", "text:count"]));
    else await eventually(async () => expect(await whyNot("load:average")).toContain("bubblewrap is not installed"));
  });
});

describe.runIf(HAS_BWRAP)("a call of a plugin's tool", () => {
  const GATES = GATE_WAYS.filter(({ name }) => name !== "a tool's own RPC");

  describe.each(GATES)("by $name", ({ call }) => {
    test("runs where it is permitted, on record, in the sandbox", async () => {
      const reported = await call(plane, { as: "agent", tool: "load:average", params: {}, callId });
      expect(reported.text).toMatch(/\d+\.\d\d \d+\.\d\d \d+\.\d\d/);
      const found = await callerOf(plane, plane.tokens.agent).registry.getCall({ callId: reported.callId });
      expect(found.call?.status).toMatchObject({ state: CallState.SUCCEEDED, sandbox: SandboxLevel.READ_ONLY });
      const [decided, outcome] = await recordsOf(found.call?.id ?? "", 2);
      const permit = { decision: DecisionKind.PERMIT, tool: "load:average" };
      expect(decided).toMatchObject({ case: "decided", value: permit });
      expect(outcome).toMatchObject({ case: "outcome", value: { state: CallState.SUCCEEDED, tool: "load:average" } });
    });

    test("does not run where no rule permits it, on record", async () => {
      const params = { text: "one two" };
      const reported = await call(plane, { as: "agent", tool: "text:count", params, callId });
      // Of what it would print; the tool's description is in what a model is sent.
      expect(reported.text).not.toMatch(/lines\W+1\b/);
      const { registry } = callerOf(plane, plane.tokens.agent);
      const found = await registry.getCall({ callId: reported.callId }).catch(() => undefined);
      const records = await recordsOf(found?.call?.id ?? reported.callId, 1);
      const denial = { decision: DecisionKind.DENIAL, reason: ErrorReason.POLICY_DENIED, grantId: "" };
      expect(records).toMatchObject([{ case: "decided", value: denial }]);
    });
  });

  test("at the command line prints what the program prints, and takes its arguments as options", async () => {
    const { code, stdout, stderr } = await reeve("call", "this", "text:count", "--text", "a b a", "--top", "1");
    expect(code, stderr).toBe(0);
    expect(JSON.parse(stdout)).toEqual({ lines: 1, words: 3, characters: 5, frequent: { a: 2 } });
  });

  test("over plain HTTP has the same result", async () => {
    const response = await fetch(`${plane.registry.url}/invoke`, {
      method: "POST",
      headers: { authorization: `Bearer ${plane.tokens.operator}`, "content-type": "application/json" },
      body: JSON.stringify({ tool: "text:count", params: { text: "a" } }),
    });
    expect(response.status).toBe(200);
    expect(await response.text()).toMatch(/lines\W+1\b/);
  });

  test("whose program fails has failed, with the program's words", async () => {
    const { call } = await operator.registry.callTool({ tool: "text:count", params: { text: "" } });
    expect(call?.status).toMatchObject({
      state: CallState.FAILED,
      error: { reason: ErrorReason.TOOL_FAILED, metadata: { program: "count.py", exit_code: "1" } },
      errorMessage: "the text has no words",
    });
  });

  test("with an input that its schema refuses is refused before anything is decided", async () => {
    const { code, stderr } = await reeve("call", "this", "text:count", "--input", '{"text":"a","more":1}');
    expect(code).toBe(2);
    expect(stderr).toContain("more");
  });

  test("does not run once the plugin was changed, until it is accepted again", async () => {
    const script = join(plugins, "text", "count.py");
    await writeFile(script, `${await readFile(script, "utf8")}# changed\n`);
    const changed = await operator.registry.callTool({ tool: "text:count", params: { text: "a" } }).then(
      ({ call }) => call?.status?.error?.reason,
      () => undefined,
    );
    expect([ErrorReason.NOT_AVAILABLE, ErrorReason.MANIFEST_REFUSED, undefined]).toContain(changed);
    expect((await states()).text).toBe("changed");
    await eventually(async () => expect(await offered()).toEqual(["load:average"]));
    expect(await whyNot("text")).toContain("has changed since it was accepted");
    const { stdout } = await reeve("plugin", "accept", join(plugins, "text"));
    expect(stdout).toContain("changed: its files, and no tool's input");
    await eventually(async () => expect(await offered()).toContain("text:count"));
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
