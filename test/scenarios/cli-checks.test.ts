import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { DEFAULT_POLICY_FILE } from "../../services/policy/rules/default-policy.ts";
import { runReeve, shellOf } from "../../testkit/cli.ts";
import { type Caller, callerOf } from "../../testkit/clients.ts";
import { startTestStack, type TestStack } from "../../testkit/stack.ts";

let plane: TestStack;
let operator: Caller;
let home: string;
beforeAll(async () => {
  plane = await startTestStack();
  operator = callerOf(plane, plane.tokens.operator);
  home = await mkdtemp(join(tmpdir(), "reeve-home-"));
});
afterAll(async () => {
  await plane.close();
  await rm(home, { recursive: true });
});

const asOperator = (...args: string[]) => runReeve(args, shellOf(plane, plane.tokens.operator, home));

describe("reeve policy", () => {
  test("checks a good policy file", async () => {
    const { code, stdout } = await runReeve(["policy", "check", DEFAULT_POLICY_FILE], { HOME: home });
    expect(code).toBe(0);
    expect(stdout).toMatch(/\d+ rules hold, and so do \d+ examples/);
  });

  test("names the line and the rule of what is wrong in a bad one", async () => {
    const file = join(home, "bad.yaml");
    const text = await readFile(DEFAULT_POLICY_FILE, "utf8");
    const needle = '"operator" in principal.roles\'\n    message: Operators may run programs.';
    await writeFile(file, text.replace(needle, needle.replace("operator", "auditor")));
    const { code, stdout, stderr } = await runReeve(["policy", "check", file], { HOME: home });
    expect([code, stdout]).toEqual([2, ""]);
    const line = text.slice(0, text.indexOf("systemctl, restart, nginx")).split("\n").length;
    expect(stderr).toContain("exec/operator");
    expect(stderr).toMatch(new RegExp(`\\b${line}\\b`));
  });

  test("explains what would be decided, and records nothing", async () => {
    const before = await operator.audit.listRecords({ pageSize: 1000 });
    const { code, stdout } = await asOperator("policy", "explain", "this", "exec", "--argv", "touch", "--argv", "x");
    expect(code).toBe(0);
    expect(stdout).toContain("hold");
    expect(stdout).toContain("exec/agent-other");
    const after = await operator.audit.listRecords({ pageSize: 1000 });
    expect(after.entries.length).toBe(before.entries.length);
  });
});

describe("reeve doctor", () => {
  test("finds nothing broken in a control plane that works", async () => {
    const { code, stdout, stderr } = await asOperator("doctor");
    expect(code, stdout + stderr).toBe(0);
    expect(stdout).toMatch(/ok +registry/);
    expect(stdout).toMatch(/ok +policy/);
  });

  test("says what is broken, and what to do, where there is no control plane", async () => {
    const { code, stdout } = await runReeve(["doctor"], { HOME: home });
    expect(code).toBe(1);
    expect(stdout).toMatch(/^broken +control plane: .*reeve up/m);
  });
});

describe("without the right to call", () => {
  test("no token: says where one is looked for", async () => {
    const env = { HOME: home, REEVE_REGISTRY_URL: plane.registry.url };
    const { code, stdout, stderr } = await runReeve(["tool", "list"], env);
    expect([code, stdout]).toEqual([2, ""]);
    expect(stderr).toContain("no token is known");
    expect(stderr).toContain("REEVE_TOKEN");
  });

  test("no control plane: says how to start one", async () => {
    const { code, stderr } = await runReeve(["tool", "list"], { HOME: home });
    expect(code).toBe(2);
    expect(stderr).toContain("reeve up");
  });

  test("an unknown token is refused", async () => {
    const token = `rv_${"0".repeat(12)}_${"A".repeat(43)}`;
    const { code, stderr } = await runReeve(["tool", "list"], shellOf(plane, token, home));
    expect(code).toBe(3);
    expect(stderr).toContain("token");
  });

  test("a control plane that does not answer is named as such", async () => {
    const env = shellOf({ registry: { url: "http://127.0.0.1:9" }, policy: plane.policy }, plane.tokens.operator, home);
    const { code, stderr } = await runReeve(["tool", "list"], env);
    expect(code, stderr).toBe(5);
  });
});
