import { mkdir, writeFile } from "node:fs/promises";
import { dirname, join } from "node:path";
import { describe, expect, it } from "vitest";
import { writeWorkspace } from "../compile-proto.ts";
import { toolOutput } from "../run-tool.ts";
import { withTemporaryFolder } from "../temporary-folder.ts";
import { writeThirdParty } from "../third-party.ts";
import { checkBreaking } from "./breaking.ts";
import { differences } from "./generated.ts";
import { machinePaths, usesIn } from "./machine-paths.ts";
import { runSteps } from "./run-steps.ts";
import type { StepResult } from "./step.ts";

async function put(root: string, path: string, text: string): Promise<void> {
  await mkdir(dirname(join(root, path)), { recursive: true });
  await writeFile(join(root, path), text);
}

describe("runSteps", () => {
  it("runs every step, prints a line for each and names those that failed", async () => {
    const lines: string[] = [];
    const steps = [
      { name: "first", run: () => Promise.resolve<StepResult>({ kind: "failed", output: "what is wrong" }) },
      { name: "second", run: () => Promise.reject<StepResult>(new Error("broken")) },
      { name: "third", run: () => Promise.resolve<StepResult>({ kind: "skipped", why: "not here" }) },
      { name: "fourth", run: () => Promise.resolve<StepResult>({ kind: "passed" }) },
    ];
    expect(await runSteps(steps, (line) => lines.push(line))).toEqual(["first", "second"]);
    expect(lines.map((line) => line.replace(/\d+\.\d/, "0"))).toEqual([
      "failed   first (0 s)",
      "what is wrong",
      "failed   second (0 s)",
      "broken",
      "skipped  third (0 s): not here",
      "passed   fourth (0 s)",
    ]);
  });
});

describe("differences", () => {
  it("names what is changed, missing or left over", async () => {
    await withTemporaryFolder(async (folder) => {
      await put(folder, "a/same.ts", "1");
      await put(folder, "b/same.ts", "1");
      await put(folder, "a/ts/changed.ts", "1");
      await put(folder, "b/ts/changed.ts", "2");
      await put(folder, "a/left-over.ts", "1");
      await put(folder, "b/missing.ts", "1");
      expect(await differences(join(folder, "a"), join(folder, "b"))).toEqual([
        "left-over.ts",
        "missing.ts",
        "ts/changed.ts",
      ]);
    });
  });
});

describe("the machine's paths", () => {
  it("are the checkout, the folder it is in and the home, but not what every machine has", () => {
    expect(machinePaths("/home/ann/code/reeve", "/home/ann")).toEqual([
      "/home/ann/code/reeve",
      "/home/ann/code",
      "/home/ann",
    ]);
    expect(machinePaths("/tmp/reeve", "/root")).toEqual(["/tmp/reeve"]);
  });

  it("are found as paths, not as parts of other words", () => {
    const text = "see /data/reeve/x\nhttps://example.com/data/reeve\n/data/reeve-two\n`/data/reeve`";
    expect(usesIn("a.md", text, ["/data/reeve"])).toEqual([
      "a.md:1: names a path of this machine",
      "a.md:4: names a path of this machine",
    ]);
  });
});

describe("checkBreaking", () => {
  const git = (root: string, ...args: string[]) =>
    toolOutput("git", ["-c", "user.name=a", "-c", "user.email=a@example.com", ...args], root);

  it("compares with main, and says why where it cannot", async () => {
    await withTemporaryFolder(async (root) => {
      await git(root, "init", "--quiet", "--initial-branch=main");
      expect(await checkBreaking(root)).toEqual({ kind: "skipped", why: "there is no branch main here" });
      await git(root, "commit", "--quiet", "--allow-empty", "-m", "first");
      expect(await checkBreaking(root)).toEqual({ kind: "skipped", why: "main has no API v1 yet" });

      const sample = (field: string) =>
        `syntax = "proto3";\npackage sample.v1;\nmessage Sample { string ${field} = 1; }\n`;
      await writeThirdParty(join(root, "third_party"));
      await writeWorkspace(root, { "sample/v1/sample.proto": sample("name") });
      await put(root, ".gitignore", "third_party/\n");
      await git(root, "add", ".");
      await git(root, "commit", "--quiet", "-m", "second");
      expect(await checkBreaking(root)).toEqual({ kind: "passed" });

      await put(root, "proto/sample/v1/sample.proto", sample("other"));
      const result = await checkBreaking(root);
      expect(result).toMatchObject({ kind: "failed", output: expect.stringContaining("sample.proto") });

      await git(root, "update-ref", "refs/remotes/origin/main", "refs/heads/main");
      await git(root, "checkout", "--quiet", "--detach");
      await git(root, "branch", "--quiet", "-D", "main");
      expect(await checkBreaking(root)).toMatchObject({ kind: "failed" });
    });
  });
});
