import { execFileSync } from "node:child_process";
import { mkdirSync, readFileSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { EvalRequestSchema } from "../../../../../gen/ts/reeve/tools/v1/shell_pb.ts";
import { analyzeCall, type CallAnalysis } from "../../../../../lib/command/call.ts";
import { toolByName } from "../../../../../lib/toolschema/catalog-file.ts";
import { createRoots, type Roots } from "../../../roots/roots.ts";
import { openTestSandbox, type TestSandbox } from "../../../testing/test-sandbox.ts";
import { shellTools } from "../../shell.ts";
import { createTestContext } from "../../testing/context.ts";
import type { ToolContext } from "../../tool.ts";

/** A sandbox with a project in it, and shell.eval as a device runs it by itself. */
export interface PlanBench extends AsyncDisposable {
  sandbox: TestSandbox;
  /** The project's folder: a git repository. */
  project: string;
  analyze(text: string, cwd?: string): CallAnalysis;
  /** Runs the plan of a text that is allowed. */
  run(text: string, cwd?: string): Promise<{ stdout: string; stderr: string; exitCode: number }>;
}

/** Opens a bench; the project is a copy of nothing but what this file writes. */
export async function openPlanBench(): Promise<PlanBench> {
  const sandbox = await openTestSandbox((work) => writeProject(join(work, "project")));
  const project = join(sandbox.work, "project");
  const test = createTestContext();
  const roots = createRoots({ read: [sandbox.readable], write: [sandbox.work], workDir: project });
  const analyze = (text: string, cwd = project): CallAnalysis =>
    analyzeCall(toolByName("shell.eval")?.inputSchema ?? {}, { command: text, cwd }, foldersOf(roots));
  return {
    sandbox,
    project,
    analyze,
    async run(text, cwd = project) {
      const { plan, reasons } = analyze(text, cwd);
      if (plan === undefined) throw new Error(`not allowed: ${reasons.map(({ message }) => message).join("; ")}`);
      const context: ToolContext = { ...test.context, timeoutMs: 20_000, executor: sandbox.executor, roots, plan };
      const {
        stdout = "",
        stderr = "",
        exitCode = -1,
      } = await shellTools.eval(create(EvalRequestSchema, { command: text, cwd }), context);
      return { stdout, stderr, exitCode };
    },
    async [Symbol.asyncDispose]() {
      roots[Symbol.dispose]();
      test[Symbol.dispose]();
      await sandbox[Symbol.asyncDispose]();
    },
  };
}

function foldersOf({ granted, workDir }: Roots) {
  return { roots: granted.map(({ path }) => path), workDir };
}

/** Runs git as the owner of a repository, without settings of the machine. */
export function git(cwd: string, ...args: string[]): string {
  const who = ["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "init.defaultBranch=main"];
  const env = { PATH: process.env.PATH ?? "", HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" };
  return execFileSync("git", [...who, ...args], { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

const FILES: Readonly<Record<string, string | Uint8Array>> = {
  "a.txt": "one line\ntwo lines\nthree  lines\nmore of it\n",
  "b.txt": "x\nb line\nx\n",
  "a file.txt": "with a blank\n",
  "tabs.txt": "a\tb\n\tc\n",
  "numbers.txt": "10\n9\n2\n10\n",
  "data.csv": "name,count\nadam,3\neve,20\n",
  "data.json": '{"name":"it","list":[1,2,3]}\n',
  "a.bin": new Uint8Array([0, 1, 2, 250, 255, 65, 66, 67, 68, 69, 10]),
  "empty.txt": "",
  "src/main.ts": "export const main = 1;\nconst x = 2;\n",
  "src/util.ts": "export const util = 1;\n",
  "src/deep/more.ts": "export const more = 1;\n",
};

function writeProject(project: string): void {
  mkdirSync(join(project, "src", "deep"), { recursive: true });
  for (const [name, content] of Object.entries(FILES)) writeFileSync(join(project, name), content);
  symlinkSync("a.txt", join(project, "link"));
  const inProject = (program: string, ...args: string[]) => execFileSync(program, args, { cwd: project });
  inProject("gzip", "-kn", "a.txt");
  inProject("tar", "-cf", "all.tar", "a.txt", "src");
  inProject("tar", "-czf", "all.tar.gz", "a.txt", "src");
  mkdirSync(join(project, "keys"));
  for (const name of ["server.key", "server.pem", "secrets.yml", "id_rsa", ".env"]) {
    writeFileSync(join(project, "keys", name), "hidden\n");
  }
  writeFileSync(join(project, "keys", "plain.txt"), "plain\n");
  writeFileSync(join(project, ".gitignore"), "keys\n");
  git(project, "init", "-q");
  git(project, "add", ".");
  git(project, "commit", "-qm", "first");
  writeFileSync(join(project, "a.txt"), `${readFileSync(join(project, "a.txt"), "utf8")}last\n`);
  git(project, "commit", "-qam", "second");
  git(project, "tag", "v1");
  git(project, "branch", "other");
  writeFileSync(join(project, "b.txt"), "x\nb line\nx\nchanged\n");
  writeFileSync(join(project, "new.txt"), "untracked\n");
  // So that no index has to be written for what is asked later.
  git(project, "status");
}
