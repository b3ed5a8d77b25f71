import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { pendingApproval } from "../../testkit/approvals.ts";
import { CLI, type CliResult, runReeve, runReeveProcess, shellOf } from "../../testkit/cli.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { type ControlPlane, startControlPlane } from "../../testkit/control-plane.ts";
import { nodeEnv } from "../../testkit/node-env.ts";

let plane: ControlPlane;
let operator: Caller;
let home: string;
beforeAll(async () => {
  plane = await startControlPlane();
  operator = callerOf(plane, plane.tokens.operator);
  home = await mkdtemp(join(tmpdir(), "reeve-home-"));
});
afterAll(async () => {
  await plane.close();
  await rm(home, { recursive: true });
});

const asOperator = (...args: string[]) => runReeve(args, shellOf(plane, plane.tokens.operator, home));
const asAgent = (...args: string[]) => runReeve(args, shellOf(plane, plane.tokens.agent, home));
/** The one JSON document that a command printed. */
const jsonOf = ({ stdout }: CliResult): unknown => JSON.parse(stdout);

describe("reeve tool list", () => {
  test("lists what can be called, for people", async () => {
    const { code, stdout, stderr } = await asAgent("tool", "list");
    expect([code, stderr]).toEqual([0, ""]);
    expect(stdout).toMatch(/^TOOL +TRAITS +WHAT IT DOES\n/);
    expect(stdout).toMatch(/^exec +acts, destructive +Run one program/m);
  });

  test("lists what can be called, for programs", async () => {
    const { tools } = jsonOf(await asAgent("tool", "list", "--json")) as {
      tools: { name: string; inputSchema: object }[];
    };
    const exec = tools.find(({ name }) => name === "exec");
    expect(exec?.inputSchema).toMatchObject({ type: "object", properties: { argv: { type: "array" } } });
  });
});

describe("reeve call", () => {
  test("prints what the program printed, and nothing else", async () => {
    const result = await asOperator("call", "this", "exec", "--argv", "printf", "--argv", "a\\nno newline");
    expect(result).toEqual({ code: 0, stdout: "a\nno newline", stderr: "" });
  });

  test("keeps the program's two outputs apart, and ends with its exit code, as a process", async () => {
    const words = ["call", "this", "exec", "--", "sh", "-c", "echo out; echo err >&2; exit 3"];
    const result = await runReeveProcess(words, shellOf(plane, plane.tokens.operator, home));
    expect(result).toEqual({ code: 3, stdout: "out\n", stderr: "err\n" });
  });

  test("ends with the program's exit code", async () => {
    const { code } = await asOperator("call", "this", "exec", "--argv", "sh", "--argv=-c", "--argv", "exit 3");
    expect(code).toBe(3);
  });

  test("prints the call with decision, grant, receipt and its places in the log, as JSON", async () => {
    const result = await asOperator("call", "this", "exec", "--argv", "uname", "--argv=-a", "--json");
    const call = jsonOf(result) as { id: string; spec: { argsDigest: string }; status: { grantId: string } };
    const grantId = expect.stringMatching(/^[0-9a-f]{32}$/) as string;
    expect(call).toMatchObject({
      spec: { ingress: expect.stringMatching(/^INGRESS_/) as string, client: "cli" },
      status: {
        state: "CALL_STATE_SUCCEEDED",
        decision: {
          kind: "DECISION_KIND_PERMIT",
          ruleIds: ["exec/operator"],
          auditIndex: expect.stringMatching(/^\d+$/) as string,
        },
        grantId,
        receipt: {
          callId: call.id,
          grantId: call.status.grantId,
          outcome: "EXECUTION_OUTCOME_SUCCEEDED",
          argsDigest: call.spec.argsDigest,
        },
        outcomeAuditIndex: expect.stringMatching(/^\d+$/) as string,
      },
    });
    expect(result.code).toBe(0);
  });

  test("takes the whole input as JSON", async () => {
    const path = join(plane.work, "written by json.txt");
    const input = JSON.stringify({ path, text: "text", mode: "WRITE_MODE_CREATE" });
    const { code, stderr } = await asAgent("call", "this", "fs.write", "--input", input);
    expect(code, stderr).toBe(0);
    expect(await readFile(path, "utf8")).toBe("text");
  });

  test("says that a call is denied, and why", async () => {
    const { code, stdout, stderr } = await asAgent("call", "this", "fs.read", "--path", "/etc/shadow");
    expect([code, stdout]).toEqual([3, ""]);
    expect(stderr).toMatch(/^reeve: denied: /);
    expect(stderr).toContain("This looks like a place where secrets are kept.");
  });

  test("says that a call is blocked, and that no approval can lift that", async () => {
    const mark = join(plane.work, "blocked");
    const { code, stderr } = await asOperator("call", "this", "shell.eval", "--command", `touch ${mark}; rm -rf /`);
    expect(code, stderr).toBe(3);
    expect(stderr).toContain("no approval can lift this block");
    expect(existsSync(mark)).toBe(false);
  });

  test("names the tools that there are where one is not known", async () => {
    const { code, stderr } = await asOperator("call", "this", "exek", "--argv", "uname");
    expect(code).toBe(2);
    expect(stderr).toMatch(/exek/);
    expect(stderr).toMatch(/\bexec\b.*\bfs\.read\b/);
  });

  test("names the devices that there are where one is not known", async () => {
    const { code, stderr } = await asOperator("call", "laptop", "exec", "--argv", "uname");
    expect(code).toBe(2);
    expect(stderr).toContain("laptop");
    expect(stderr).toContain("this");
  });

  test("names the flag that is wrong, and runs nothing", async () => {
    const { code, stderr } = await asOperator("call", "this", "exec", "--argv", "uname", "--argw", "x");
    expect(code).toBe(2);
    expect(stderr).toContain("--argw");
  });

  test("says why a program could not be started", async () => {
    const { code, stderr } = await asOperator("call", "this", "exec", "--argv", "no-such-program");
    expect(code).toBe(9);
    expect(stderr).toContain("no-such-program");
  });

  test("does not wait for a person with --no-wait, and says what to do", async () => {
    const { code, stdout, stderr } = await asAgent(
      "call",
      "this",
      "exec",
      "--no-wait",
      "--argv",
      "touch",
      "--argv",
      "x",
    );
    expect([code, stdout]).toEqual([4, ""]);
    expect(stderr).toMatch(/is held.*reeve approval approve apr-/);
  });

  test("prints a refusal as JSON where JSON is wanted", async () => {
    const { code, stdout, stderr } = await asOperator("call", "this", "exek", "--json");
    expect([code, stdout]).toEqual([2, ""]);
    expect(JSON.parse(stderr)).toMatchObject({ error: { reason: "unknown_tool", exitCode: 2 } });
  });

  test("shows a tool's own flags", async () => {
    const { code, stdout } = await asOperator("call", "this", "exec", "--help");
    expect(code).toBe(0);
    expect(stdout).toContain("--argv");
    expect(stdout).toContain("--timeout-ms");
  });
});

describe("reeve approval list", () => {
  test("a held call is listed, shown and approved, and its caller gets the output", async () => {
    const call = asAgent(
      "call",
      "this",
      "exec",
      "--call-id",
      "cli-held",
      "--argv",
      "sh",
      "--argv=-c",
      "--argv",
      "echo ran",
    );
    const { id } = await pendingApproval(operator, "cli-held");
    const list = await asOperator("approval", "list", "--state", "pending");
    expect(list.stdout).toContain(id);
    const shown = await asOperator("approval", "show", id);
    expect(shown.stdout).toContain("echo ran");
    const unsure = await asOperator("approval", "approve", id);
    expect(unsure.code).toBe(2);
    expect(unsure.stderr).toContain("--yes");
    const approved = await asOperator("approval", "approve", id, "--yes", "--comment", "fine");
    expect(approved).toMatchObject({ code: 0, stdout: `${id} approved\n` });
    expect(approved.stderr).toContain("echo ran");
    const { code, stdout, stderr } = await call;
    expect([code, stdout]).toEqual([0, "ran\n"]);
    expect(stderr).toContain(`reeve approval approve ${id}`);
    const again = await asOperator("approval", "deny", id);
    expect([again.code, again.stderr]).toEqual([2, expect.stringContaining("approved already")]);
  });

  test("a held call is denied, and its caller learns what was said", async () => {
    const call = asAgent("call", "this", "exec", "--call-id", "cli-denied", "--argv", "touch", "--argv", "x");
    const { id } = await pendingApproval(operator, "cli-denied");
    const denied = await asOperator("approval", "deny", id, "--comment", "not today", "--json");
    expect(jsonOf(denied)).toMatchObject({
      id,
      status: { state: "APPROVAL_STATE_DENIED", comment: "not today", channel: "cli" },
    });
    const { code, stderr } = await call;
    expect(code).toBe(3);
    expect(stderr).toContain("not today");
  });

  test("an agent may not approve", async () => {
    const held = await asAgent("call", "this", "exec", "--no-wait", "--json", "--argv", "touch", "--argv", "x");
    const { id: approvalId } = (jsonOf(held) as { status: { approval: { id: string } } }).status.approval;
    const { code, stderr } = await asAgent("approval", "approve", approvalId, "--yes");
    expect(code).toBe(3);
    expect(stderr).toContain("operator");
  });
});

describe("reeve call list", () => {
  test("lists and shows calls", async () => {
    await asOperator("call", "this", "device.ping", "--call-id", "cli-listed", "--text", "hello");
    const list = await asOperator("call", "list", "--tool", "device.ping");
    expect(list.stdout).toMatch(/^succeeded +device\.ping .* cli-listed$/m);
    const shown = await asOperator("call", "show", "cli-listed");
    expect(shown.stdout).toContain("hello");
    expect(shown.stdout).toMatch(/permit by read-only/);
    const none = await asAgent("call", "show", "cli-listed");
    expect(none.code).toBe(2);
  });

  test("cancels a held call", async () => {
    const params = { argv: ["touch", "x"] };
    await callerOf(plane, plane.tokens.agent).registry.callTool({
      tool: "exec",
      params,
      callId: "cli-cancel",
      noWait: true,
    });
    const { stdout, stderr } = await asAgent("call", "cancel", "cli-cancel", "--json");
    expect(JSON.parse(stdout), stderr).toMatchObject({
      id: expect.stringMatching(/^cli-cancel-/),
      status: { state: "CALL_STATE_CANCELED" },
    });
  });
});

describe("reeve audit", () => {
  test("lists the records of a call", async () => {
    await asOperator("call", "this", "device.ping", "--call-id", "cli-audited", "--json");
    const list = await asOperator("audit", "list", "--call", "cli-audited");
    expect(list.stdout).toMatch(/decided: permit by read-only/);
    expect(list.stdout).toMatch(/ended: succeeded/);
  });

  test("verifies the log over the network, and offline from its file", async () => {
    const remote = await asOperator("audit", "verify");
    expect(remote.stdout, remote.stderr).toContain("The audit log verifies.");
    const key = join(plane.folder, "policy-0", "checkpoint.vkey");
    const offline = await runReeve(["audit", "verify", "--db", plane.policyDatabase, "--key", key], { HOME: home });
    expect(offline.stdout, offline.stderr).toContain("The audit log verifies.");
    expect([remote.code, offline.code]).toEqual([0, 0]);
  });

  test("proves that a record is in the log, and the proof holds offline for that record only", async () => {
    await asOperator("call", "this", "device.ping", "--call-id", "cli-proved", "--json");
    const { code, stdout } = await asOperator("audit", "prove", "--call", "cli-proved", "--json");
    expect(code).toBe(0);
    const file = join(home, "proof.json");
    const key = (await readFile(join(plane.folder, "policy-0", "checkpoint.vkey"), "utf8")).trim();
    await writeFile(file, stdout);
    const holds = await runReeve(["audit", "verify-proof", file, "--key", key], { HOME: home });
    expect([holds.code, holds.stdout]).toEqual([0, expect.stringContaining("The proof holds")]);
    const bundle = JSON.parse(stdout) as { leaf: string };
    const leaf = Buffer.from(bundle.leaf, "base64");
    leaf[0] = (leaf[0] ?? 0) ^ 1;
    await writeFile(file, JSON.stringify({ ...bundle, leaf: leaf.toString("base64") }));
    const broken = await runReeve(["audit", "verify-proof", file, "--key", key], { HOME: home });
    expect([broken.code, broken.stdout]).toEqual([10, expect.stringContaining("does not hold")]);
    const bare = await asOperator("audit", "prove", "0");
    expect(bare.stdout).toMatch(/^c2sp\.org\/tlog-proof@v1\n/);
  });
});

test("nothing that is printed off a terminal has colors, with NO_COLOR or without", async () => {
  const env = { ...shellOf(plane, plane.tokens.operator, home), NO_COLOR: "1" };
  for (const args of [
    ["tool", "list"],
    ["call", "list"],
    ["approval", "list"],
    ["audit", "list"],
    ["doctor"],
    ["--help"],
  ]) {
    const [plain, noColor] = await Promise.all([asOperator(...args), runReeve(args, env)]);
    for (const { stdout, stderr } of [plain, noColor]) expect(stdout + stderr).not.toContain("\u001b");
  }
  const { stdout, stderr } = await runReeveProcess(["doctor"], shellOf(plane, plane.tokens.operator, home));
  expect(stdout + stderr).not.toContain("\u001b");
});

test("an interrupted call is canceled on the device", async () => {
  const env = { ...nodeEnv(), ...shellOf(plane, plane.tokens.operator, home) };
  const args = [
    "call",
    "this",
    "exec",
    "--call-id",
    "cli-interrupted",
    "--",
    "sh",
    "-c",
    "echo started; exec sleep 60",
  ];
  const child = spawn(process.execPath, [CLI, ...args], { env, stdio: ["ignore", "pipe", "ignore"] });
  const closed = once(child, "close");
  await once(child.stdout, "data");
  child.kill("SIGINT");
  expect(await closed).toEqual([7, null]);
  const shown = await asOperator("call", "show", "cli-interrupted", "--json");
  expect(jsonOf(shown)).toMatchObject({ status: { state: "CALL_STATE_CANCELED" } });
});
