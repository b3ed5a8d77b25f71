import { mkdir, mkdtemp, readdir, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type CliResult, runReeveProcess } from "../../testkit/cli.ts";
import { processesWith } from "../../testkit/programs.ts";

let folder: string;
let home: string;
let temporary: string;
let demo: CliResult;

// No API key, no terminal, no profile: what a newcomer has.
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-demo-test-"));
  home = join(folder, "home");
  temporary = join(folder, "tmp");
  await Promise.all([mkdir(home), mkdir(temporary)]);
  demo = await runReeveProcess(["demo"], { HOME: home, TMPDIR: temporary });
});
afterAll(() => rm(folder, { recursive: true }));

test("the demo does all that it promises", () => {
  expect(demo.code, demo.stdout + demo.stderr).toBe(0);
  expect(demo.stdout).not.toContain("not as promised");
  expect(demo.stderr).toBe("");
});

test("it says that its model is a scripted one, and that it approves by itself", () => {
  expect(demo.stdout).toContain("ANTHROPIC_API_KEY is not set: a scripted model plays its part");
  expect(demo.stdout).toContain("Approved by the demo itself: there is no terminal to ask on.");
});

test("it shows a call that waits for a person and runs, and one that is blocked", () => {
  expect(demo.stdout).toMatch(/held, until a human decides/);
  expect(demo.stdout).toMatch(/^ +SUCCEEDED +shell\.eval +shell\.eval\/hold$/m);
  expect(demo.stdout).toMatch(/^ +DENIED +shell\.eval +blocklist\/delete-system, shell\.eval\/hold$/m);
});

test("it uses the tools of the job", () => {
  for (const tool of ["exec", "fs.list", "shell.eval", "fs.write"]) {
    expect(demo.stdout).toMatch(new RegExp(`^ +SUCCEEDED +${tool.replace(".", "\\.")} `, "m"));
  }
});

test("it prints the report, a receipt, and that the record verifies", () => {
  expect(demo.stdout).toContain("The report");
  expect(demo.stdout).toMatch(/"outcome": "EXECUTION_OUTCOME_SUCCEEDED"/);
  expect(demo.stdout).toMatch(/audit log: decision at \d+, end at \d+/);
  expect(demo.stdout).toContain("The audit log verifies.");
});

test("it leaves no file and no process behind", async () => {
  expect(await readdir(temporary)).toEqual([]);
  expect(await readdir(home)).toEqual([]);
  expect(await processesWith("HOME", home)).toEqual([]);
});
