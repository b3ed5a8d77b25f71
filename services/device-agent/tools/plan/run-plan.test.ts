import { execFileSync } from "node:child_process";
import { readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { ExecRequestSchema } from "../../../../gen/ts/reeve/tools/v1/shell_pb.ts";
import { analyzeCall } from "../../../../lib/command/call.ts";
import { toolByName } from "../../../../lib/toolschema/catalog-file.ts";
import { HAS_BWRAP } from "../../testing/test-sandbox.ts";
import { shellTools } from "../shell.ts";
import { createTestContext, faultOf } from "../testing/context.ts";
import { openPlanBench, type PlanBench } from "./testing/plan-bench.ts";

const TEXTS = readFileSync(join(import.meta.dirname, "testdata", "looking.txt"), "utf8")
  .split("\n")
  .filter((line) => line !== "" && !line.startsWith("# "))
  .map((line) => (line.startsWith('"') ? (JSON.parse(line) as string) : line));

let bench: PlanBench;
beforeAll(async () => {
  if (HAS_BWRAP) bench = await openPlanBench();
});
afterAll(() => bench?.[Symbol.asyncDispose]());

interface Result {
  stdout: string;
  stderr: string;
  exitCode: number;
}

/** The text in bash, with the environment that a program of the device gets, git without the owner's settings, and no sandbox. */
function inBash(text: string): Result {
  const bash = bench.sandbox.executor.resolve("bash") ?? "";
  const { PATH = "", LANG = "C.UTF-8", LC_ALL, TZ, USER } = process.env;
  const given = Object.entries({ PATH, LANG, LC_ALL, TZ, USER }).filter(([, value]) => value !== undefined);
  const forGit = { GIT_CONFIG_GLOBAL: "/dev/null", GIT_CONFIG_NOSYSTEM: "1", GIT_OPTIONAL_LOCKS: "0" };
  const env = { ...Object.fromEntries(given), HOME: "/tmp", ...forGit };
  try {
    const stdout = execFileSync(bash, ["--noprofile", "--norc", "-c", "--", text], {
      cwd: bench.project,
      env,
      encoding: "utf8",
      stdio: ["ignore", "pipe", "pipe"],
    });
    return { stdout, stderr: "", exitCode: 0 };
  } catch (error: unknown) {
    const { stdout, stderr, status } = error as { stdout: string; stderr: string; status: number };
    return { stdout, stderr, exitCode: status };
  }
}

describe.skipIf(!HAS_BWRAP)("a plan in the sandbox", () => {
  it("is tried with at least 150 texts", () => {
    expect(new Set(TEXTS).size).toBe(TEXTS.length);
    expect(TEXTS.length).toBeGreaterThanOrEqual(150);
  });

  it.each(TEXTS)("prints what bash prints: %s", async (text) => {
    const [planned, bash] = [await bench.run(text), inBash(text)];
    expect({ stdout: planned.stdout, exitCode: planned.exitCode }).toEqual({
      stdout: bash.stdout,
      exitCode: bash.exitCode,
    });
    // What bash says of a program that is not installed is the one difference.
    if (bash.exitCode !== 0 && bash.exitCode !== 127) expect(planned.stderr).toBe(bash.stderr);
  });

  it("runs an argument list as it is, with its input", async () => {
    const argv = ["wc", "-l"];
    const schema = toolByName("exec")?.inputSchema ?? {};
    const { plan } = analyzeCall(schema, { argv, stdin: "a\nb\n" }, { roots: [bench.project], workDir: bench.project });
    using other = createTestContext();
    const context = { ...other.context, executor: bench.sandbox.executor, plan: plan ?? expect.fail() };
    const input = create(ExecRequestSchema, { argv, stdin: "a\nb\n" });
    // Its work folder is not shown in this sandbox, and that is no reason to run it anywhere else.
    expect(await faultOf(shellTools.exec(input, context))).toMatchObject({ reason: ErrorReason.START_FAILED });
    const shown = { ...input, cwd: bench.sandbox.work };
    const roots = { ...other.context.roots, openFolder: () => held(bench.sandbox.work) };
    const answer = await shellTools.exec(shown, { ...context, roots });
    expect(answer).toMatchObject({ stdout: "2\n", program: "/usr/bin/wc" });
  });

  it.each([
    "ls /root",
    "cat /etc/shadow",
    "wc -c /etc/passwd",
    "ls ..",
    "ls -la ../../outside",
    "cat ../.env",
    "cat .git/config",
    "head /proc/1/environ",
    "cd /etc && cat shadow",
    "cd .. && cat .env",
    "ls ~",
    "grep -r secret /",
    "cat < /etc/shadow",
    "cat /usr/share/../../etc/shadow",
    "cat *",
  ])("is not made of %s", (text) => {
    expect(bench.analyze(text)).toMatchObject({ verdict: "ask" });
  });

  it("follows no symbolic link out of the roots, and shows no secret of them", async () => {
    const { sandbox, project, run } = bench;
    for (const [name, target] of [
      ["out", sandbox.outside],
      ["shadow-link", "/etc/shadow"],
      ["env-link", join(sandbox.work, ".env")],
      ["key-link", join(sandbox.work, "state", "device.key")],
    ] as const)
      symlinkSync(target, join(project, "src", name));
    for (const text of ["cat src/out/c.txt", "ls src/out/", "cat src/shadow-link", "wc -c src/key-link"]) {
      const { stdout, exitCode } = await run(text);
      expect([text, stdout, exitCode === 0]).toEqual([text, "", false]);
    }
    expect((await run("cat src/env-link")).stdout).toBe("");
    expect((await run("grep -r . src/deep src/env-link")).stdout).not.toContain("TOKEN");
  });

  it("is shown no keys and tokens that it does not name, in a tree or behind a pattern", async () => {
    const { stdout } = await bench.run("grep -r . keys; cat keys/*; rg -uu . keys; sort keys/*.txt");
    expect(stdout).toContain("plain");
    expect(stdout).not.toContain("hidden");
  });

  it("can write nothing, even where a program of it would", async () => {
    writeFileSync(join(bench.project, "src", "deep", "more.ts"), "export const more = 1;\n");
    const { stdout } = await bench.run("sort src/deep/more.ts");
    expect(stdout).toBe("export const more = 1;\n");
    const started = await bench.sandbox.run(["touch", join(bench.project, "made")]);
    expect(started).toMatchObject({ kind: "exited", code: 1 });
  });
});

const held = (path: string) => ({ path, at: (name = "") => join(path, name), [Symbol.dispose]: () => undefined });

it("does not run at all where the device has no sandbox", async () => {
  using test = createTestContext();
  writeFileSync(join(test.folder, "a.txt"), "a\n");
  const schema = toolByName("exec")?.inputSchema ?? {};
  const argv = ["cat", "a.txt"];
  const { plan } = analyzeCall(schema, { argv }, { roots: [test.folder], workDir: test.folder });
  const context = { ...test.context, plan: plan ?? expect.fail() };
  expect(await faultOf(shellTools.exec(create(ExecRequestSchema, { argv }), context))).toMatchObject({
    reason: ErrorReason.SANDBOX_UNAVAILABLE,
    metadata: { required: "read_only" },
  });
});
