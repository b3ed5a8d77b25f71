import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { commandList } from "./command-list.ts";
import { runInFake } from "./testing/fake-context.ts";

let folder: string;
beforeAll(async () => {
  folder = join(await mkdtemp(join(tmpdir(), "reeve-run-")), "data");
});
afterAll(() => rm(join(folder, ".."), { recursive: true, force: true }));

function reeve(...argv: string[]) {
  return runInFake(argv, { env: { REEVE_DATA_DIR: folder } });
}

describe("reeve", () => {
  it("lists every command and every exit code", async () => {
    const { code, stdout, stderr } = await reeve("--help");
    expect({ code, stderr }).toEqual({ code: 0, stderr: "" });
    for (const { name, summary } of commandList) expect(stdout.replace(/\s+/g, " ")).toContain(`${name} ${summary}`);
    expect(stdout).toContain("Exit codes:");
  });

  it.each(commandList.map(({ name }) => name))("%s has help of its own", async (name) => {
    const { code, stdout } = await reeve(name, "--help");
    expect(code).toBe(0);
    expect(stdout).toContain(`Usage: reeve ${name}`);
  });

  it("shows its version", async () => {
    expect(await reeve("--version")).toMatchObject({ code: 0, stdout: expect.stringMatching(/^\d+\.\d+\.\d+\n$/) });
  });

  it.each([
    [["tols"], "unknown command 'tols'"],
    [["tool", "list", "--bogus"], "unknown option '--bogus'"],
    [["call", "show"], "missing required argument 'call'"],
    [["call", "list", "--limit", "none"], "It must be a whole number from 1."],
    [["policy", "chekc"], "unknown command 'chekc'"],
  ])("%j is wrong usage: one line, and no stack", async (argv, message) => {
    const { code, stdout, stderr } = await reeve(...argv);
    expect({ code, stdout }).toEqual({ code: 2, stdout: "" });
    expect(stderr).toMatch(/^reeve: /);
    expect(stderr).toContain(message);
    expect(stderr).not.toContain("    at ");
  });

  it("shows the stack on request", async () => {
    const { stderr } = await runInFake(["tool", "list"], { env: { REEVE_DATA_DIR: folder, REEVE_DEBUG: "1" } });
    expect(stderr).toContain("    at ");
  });

  it("writes errors as JSON where JSON was asked for", async () => {
    const { code, stderr } = await reeve("tool", "list", "--json");
    expect(code).toBe(2);
    expect(JSON.parse(stderr).error.message).toContain("start one with `reeve up`");
  });
});

describe("reeve token", () => {
  it("creates a token that is shown once, in a file for its owner only", async () => {
    const created = await reeve(
      "token",
      "create",
      "--name",
      "ci",
      "--role",
      "agent",
      "--role",
      "auditor",
      "--expires",
      "30d",
    );
    expect(created).toMatchObject({ code: 0, stdout: expect.stringMatching(/^rv_[0-9a-f]{12}_[\w-]{43}\n$/) });
    expect((await stat(join(folder, "tokens.json"))).mode & 0o777).toBe(0o600);
    const { stdout } = await reeve("token", "list", "--json");
    const [token] = JSON.parse(stdout).tokens;
    expect(token).toMatchObject({ name: "ci", roles: ["agent", "auditor"], expires: expect.any(String) });
    expect(stdout).not.toContain(created.stdout.trim().slice(16));
    expect(stdout).not.toContain("hash");
  });

  it("revokes one by its id", async () => {
    const { stdout } = await reeve("token", "create", "--name", "gone", "--role", "operator", "--json");
    const { id } = JSON.parse(stdout);
    expect((await reeve("token", "revoke", id)).code).toBe(0);
    expect((await reeve("token", "revoke", id)).code).toBe(2);
    expect((await reeve("token", "list")).stdout).not.toContain("gone");
  });

  it.each([
    [["--name", "x", "--role", "king"], '--role: "king" is none of: operator, agent, auditor, service'],
    [["--name", "x"], "required option '--role <role>'"],
    [["--role", "agent"], "required option '--name <name>'"],
    [["--name", "x", "--role", "agent", "--expires", "soon"], '--expires: "soon" is no duration'],
  ])("create %j is wrong usage", async (argv, message) => {
    expect(await reeve("token", "create", ...argv)).toMatchObject({
      code: 2,
      stderr: expect.stringContaining(message),
    });
  });
});

describe("reeve policy check", () => {
  it("finds the shipped policy right", async () => {
    const file = join(import.meta.dirname, "..", "services", "policy", "rules", "default-policy.yaml");
    expect(await reeve("policy", "check", file)).toMatchObject({
      code: 0,
      stdout: expect.stringContaining("rules hold"),
    });
  });
});

describe("reeve doctor", () => {
  it("says what is missing on a new machine, and that it is broken", async () => {
    const { code, stdout } = await reeve("doctor");
    expect(code).toBe(1);
    expect(stdout).toContain("no control plane is known");
  });

  it("config show lists every setting that a file may have", async () => {
    const { code, stdout } = await reeve("config", "show", "--docs");
    expect(code).toBe(0);
    for (const name of ["REEVE_TOKEN", "REEVE_REGISTRY_PORT", "REEVE_POLICY_FILE", "REEVE_DEVICE_MODE"])
      expect(stdout).toContain(name);
    expect(JSON.parse((await reeve("config", "show", "--all", "--json")).stdout).settings.length).toBeGreaterThan(70);
  });
});
