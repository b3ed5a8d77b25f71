import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { gitRules } from "../../../../lib/command/allow/tables/git.ts";
import { HAS_BWRAP } from "../../testing/test-sandbox.ts";
import { faultOf } from "../testing/context.ts";
import { HOOKS, HOSTILE_SETTINGS, MARK, type Planted, plant } from "../testing/hostile-settings.ts";
import { git, openPlanBench, type PlanBench } from "./testing/plan-bench.ts";

/** Every git command that runs without a person being asked, as its rule shows it. */
const COMMANDS = gitRules.flatMap(({ match }) => match).concat("git status --porcelain -uall", "git diff --stat HEAD");

let bench: PlanBench;
let repository: string;
let planted: Planted;
beforeAll(async () => {
  if (HAS_BWRAP) bench = await openPlanBench();
});
afterAll(() => bench?.[Symbol.asyncDispose]());
beforeEach(() => {
  if (!HAS_BWRAP) return;
  repository = join(bench.sandbox.work, "hostile");
  mkdirSync(repository);
  planted = plant(bench.sandbox.work);
  git(repository, "init", "-q");
  writeFileSync(join(repository, "a.ts"), "foo\n");
  writeFileSync(join(repository, "README.md"), "read me\n");
  git(repository, "add", ".");
  git(repository, "commit", "-qm", "first");
  writeFileSync(join(repository, "README.md"), "read me twice\n");
  git(repository, "commit", "-qam", "second");
  // A change, so that what compares files has to read one.
  writeFileSync(join(repository, "a.ts"), "foo\nbar\n");
});
afterEach(() => {
  if (HAS_BWRAP) rmSync(repository, { recursive: true });
});

const mark = (): string => join(bench.sandbox.work, MARK);

/** Runs every command; what a repository planted must have left no sign. Returns what each ended with. */
async function runAll(): Promise<Map<string, number>> {
  const codes = new Map<string, number>();
  for (const command of COMMANDS) {
    const { stdout, stderr, exitCode } = await bench.run(command, repository);
    expect(`${command}: ${stdout}${stderr}`).not.toContain(MARK);
    codes.set(command, exitCode);
  }
  expect(existsSync(mark())).toBe(false);
  return codes;
}

describe.skipIf(!HAS_BWRAP)("git in a hostile repository", () => {
  it("works where nothing is hostile", async () => {
    const codes = await runAll();
    for (const command of ["git status", "git log --oneline -n 20", "git diff HEAD~1 --name-only", "git branch -a"]) {
      expect([command, codes.get(command)]).toEqual([command, 0]);
    }
  });

  it.each(HOSTILE_SETTINGS)("does not run where its settings have %s", async (setting, value) => {
    writeFileSync(join(repository, ".gitattributes"), "* filter=own diff=own merge=own\n");
    git(repository, "config", "--local", setting, value(planted));
    for (const command of ["git status", "git diff", "git log -p -1", "git show HEAD"]) {
      const fault = await faultOf(bench.run(command, repository));
      expect(fault).toMatchObject({ reason: ErrorReason.TOOL_FAILED, metadata: { program: "git" } });
      // Where git itself gives up over it, there is no more to say.
      expect([setting.toLowerCase(), undefined]).toContain(fault.metadata.setting?.toLowerCase());
    }
    expect(existsSync(mark())).toBe(false);
  });

  it("asks no program and no submodule because of settings that are harmless elsewhere", async () => {
    git(repository, "config", "--local", "log.showSignature", "true");
    git(repository, "config", "--local", "status.submoduleSummary", "true");
    await runAll();
  });

  it("runs no hook", async () => {
    for (const name of HOOKS) {
      writeFileSync(join(repository, ".git", "hooks", name), `#!/bin/sh\n'${planted.program}'\n`, { mode: 0o755 });
    }
    await runAll();
  });

  it("runs nothing for attributes that name what is not set", async () => {
    writeFileSync(join(repository, ".gitattributes"), "* filter=own diff=own merge=own ident\n");
    mkdirSync(join(repository, ".git", "info"), { recursive: true });
    writeFileSync(join(repository, ".git", "info", "attributes"), "* filter=own diff=own\n");
    await runAll();
  });

  it("does not ask a submodule, whose settings are its own", async () => {
    const inner = join(repository, "inner");
    mkdirSync(inner);
    git(inner, "init", "-q");
    writeFileSync(join(inner, "x"), "one\n");
    git(inner, "add", ".");
    git(inner, "commit", "-qm", "inner");
    const modules = '[submodule "inner"]\n\tpath = inner\n\turl = ./inner\n\tignore = none\n';
    writeFileSync(join(repository, ".gitmodules"), modules);
    git(repository, "add", ".");
    git(repository, "commit", "-qm", "with a submodule");
    writeFileSync(join(inner, ".gitattributes"), "* filter=own diff=own\n");
    writeFileSync(join(inner, "x"), "two\n");
    for (const setting of ["core.fsmonitor", "filter.own.clean", "diff.external", "diff.own.textconv"]) {
      git(inner, "config", "--local", setting, planted.program);
    }
    await runAll();
  });

  it("follows no git folder out of the roots, and takes none that lies in a file", async () => {
    renameSync(join(repository, ".git"), join(bench.sandbox.outside, "git-folder"));
    writeFileSync(join(repository, ".git"), `gitdir: ${join(bench.sandbox.outside, "git-folder")}\n`);
    const ended = await bench.run("git status", repository).catch(() => ({ stdout: "", exitCode: 128 }));
    expect(ended).toMatchObject({ stdout: "", exitCode: 128 });
    rmSync(join(bench.sandbox.outside, "git-folder"), { recursive: true });
  });

  it("looks at the settings of a bare repository that a folder pretends to be", async () => {
    const bare = join(repository, "pretends");
    git(repository, "clone", "-q", "--bare", ".", bare);
    git(bare, "config", "--local", "core.fsmonitor", planted.program);
    expect((await faultOf(bench.run("git log --oneline -n 20", bare))).metadata).toMatchObject({
      setting: "core.fsmonitor",
    });
    expect(existsSync(mark())).toBe(false);
  });
});
