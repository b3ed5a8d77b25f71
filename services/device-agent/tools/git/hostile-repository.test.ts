import { execFileSync } from "node:child_process";
import { existsSync, mkdirSync, rmSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  CloneRequestSchema,
  CommitRequestSchema,
  PushRequestSchema,
} from "../../../../gen/ts/reeve/tools/v1/git_pb.ts";
import { createGitTools } from "../git.ts";
import { createTestContext, faultOf, type TestContext } from "../testing/context.ts";
import { HOOKS, HOSTILE_SETTINGS, MARK, type Planted, plant } from "../testing/hostile-settings.ts";
import { createGit } from "./run-git.ts";

const tools = createGitTools({ allowFileProtocol: true });
const WHO = { authorName: "Ada", authorEmail: "ada@example.com" };
const CONFIG = { setting: "", program: "git" };

let test: TestContext;
let planted: Planted;
/** A clone of `origin`, with a change in it. */
let work: string;
let origin: string;
beforeEach(() => {
  test = createTestContext();
  planted = plant(test.folder);
  [origin, work] = [join(test.folder, "origin.git"), join(test.folder, "work")];
  git(test.folder, "init", "-q", "--bare", origin);
  git(test.folder, "clone", "-q", origin, work);
  write("a.txt", "one\n");
  write(".gitattributes", "* filter=own diff=own merge=own\n");
  git(work, "add", ".");
  git(work, "commit", "-qm", "first");
  write("a.txt", "two\n");
});
afterEach(() => test[Symbol.dispose]());

const write = (name: string, text: string, mode = 0o644): void => writeFileSync(join(work, name), text, { mode });
const commit = (input: object = {}) =>
  tools.commit(create(CommitRequestSchema, { path: work, message: "m", ...WHO, ...input }), test.context);
const push = () => tools.push(create(PushRequestSchema, { path: work }), test.context);
const clone = (url: string) =>
  tools.clone(create(CloneRequestSchema, { url, path: join(test.folder, "copy") }), test.context);

function git(cwd: string, ...args: string[]): string {
  const env = { PATH: process.env.PATH ?? "", HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" };
  const who = ["-c", "user.name=Setup", "-c", "user.email=setup@example.com", "-c", "init.defaultBranch=main"];
  return execFileSync("git", [...who, ...args], { cwd, env, encoding: "utf8", stdio: ["ignore", "pipe", "ignore"] });
}

function writeHooks(folder: string): void {
  mkdirSync(join(folder, "hooks"), { recursive: true });
  for (const name of HOOKS)
    writeFileSync(join(folder, "hooks", name), `#!/bin/sh\n'${planted.program}'\n`, { mode: 0o755 });
}

/** A repository in the work tree, which git takes for a submodule once it was added. */
function writeInner(...settings: string[]): string {
  const inner = join(work, "inner");
  mkdirSync(inner);
  git(inner, "init", "-q");
  writeFileSync(join(inner, "x"), "one\n");
  git(inner, "add", ".");
  git(inner, "commit", "-qm", "inner");
  writeFileSync(join(inner, "x"), "two\n");
  writeFileSync(join(inner, ".gitattributes"), "* filter=own diff=own\n");
  for (const setting of settings) git(inner, "config", "--local", setting, planted.program);
  return inner;
}

const expectNothingRan = (): void => expect(existsSync(join(test.folder, MARK))).toBe(false);

describe("a hostile repository", () => {
  it("would run what it plants, without the tools", () => {
    git(work, "config", "--local", "filter.own.clean", planted.program);
    git(work, "add", ".");
    expect(existsSync(join(test.folder, MARK))).toBe(true);
  });

  it.each(HOSTILE_SETTINGS)("runs nothing with %s", async (setting, value) => {
    git(work, "config", "--local", setting, value(planted));
    writeFileSync(join(test.folder, "other-config"), `[core]\n\tfsmonitor = ${planted.program}\n`);
    for (const attempt of [() => commit(), () => commit({ paths: ["a.txt"] }), push]) {
      const fault = await faultOf(attempt());
      expect(fault).toMatchObject({ reason: ErrorReason.TOOL_FAILED, metadata: { program: "git" } });
      // Where git itself gives up over it, there is no more to say.
      expect([setting.toLowerCase(), undefined]).toContain(fault.metadata.setting?.toLowerCase());
    }
    expectNothingRan();
  });

  it("runs no hook, neither where it commits nor where it pushes from", async () => {
    writeHooks(join(work, ".git"));
    await commit();
    await push();
    expectNothingRan();
  });

  it("runs no hook and no filter of what is cloned", async () => {
    git(work, "push", "-q", "origin", "HEAD:main");
    git(origin, "config", "--local", "filter.own.smudge", planted.program);
    git(origin, "config", "--local", "core.fsmonitor", planted.program);
    await clone(`file://${origin}`);
    expectNothingRan();
  });

  it.each(["core.fsmonitor", "filter.own.clean", "filter.own.process", "diff.external"])(
    "runs nothing of a submodule with %s, which git asks by its own settings",
    async (setting) => {
      writeInner();
      git(work, "add", "inner");
      git(work, "commit", "-qm", "with a submodule");
      git(join(work, "inner"), "config", "--local", setting, planted.program);
      for (const paths of [[], ["a.txt", "inner"]]) {
        expect(await faultOf(commit({ paths }))).toMatchObject({
          metadata: { ...CONFIG, setting: setting.toLowerCase() },
        });
      }
      expectNothingRan();
    },
  );

  it("runs nothing of a repository that becomes a submodule, or lies in one", async () => {
    writeInner("filter.own.clean");
    expect((await faultOf(commit({ paths: ["inner"] }))).metadata).toMatchObject({ setting: "filter.own.clean" });
    const deep = join(work, "inner", "deep");
    git(join(work, "inner"), "config", "--local", "--unset", "filter.own.clean");
    git(test.folder, "clone", "-q", work, deep);
    git(join(work, "inner"), "add", "-A");
    git(deep, "config", "--local", "filter.own.clean", planted.program);
    expect((await faultOf(commit())).metadata).toMatchObject({ setting: "filter.own.clean" });
    expectNothingRan();
  });

  it("is committed with submodules as git makes them", async () => {
    writeInner();
    git(work, "-c", "protocol.file.allow=always", "submodule", "add", "-q", join(work, "inner"), "module");
    expect(git(join(work, "module"), "config", "core.worktree")).not.toBe("");
    const { filesChanged } = await commit({ paths: ["a.txt", "module", ".gitmodules"] });
    expect(filesChanged).toBe(3);
  });

  it("makes git fetch nothing that it lacks, unless it talks to a remote anyway", async () => {
    git(work, "push", "-q", "origin", "HEAD:main");
    const blob = git(work, "rev-parse", "HEAD:a.txt").trim();
    rmSync(join(work, ".git", "objects", blob.slice(0, 2), blob.slice(2)));
    git(work, "config", "--local", "remote.origin.url", `file://${origin}`);
    git(work, "config", "--local", "remote.origin.promisor", "true");
    git(work, "config", "--local", "core.repositoryFormatVersion", "1");
    git(work, "config", "--local", "extensions.partialClone", "origin");
    const run = createGit({ allowFileProtocol: true });
    const show = (talks: boolean) => run(test.context, { args: ["cat-file", "-p", blob], cwd: work, talks });
    expect(await show(false)).toMatchObject({ exitCode: 128, stdout: "" });
    expect(await show(true)).toMatchObject({ exitCode: 0, stdout: "one\n" });
  });

  it("sends nothing to an address that names a program", async () => {
    const addresses = [
      `ext::${planted.program}`,
      `--receive-pack=${planted.program}`,
      `ssh://-oProxyCommand=${planted.program}/x`,
      `git://127.0.0.1:1/x`,
      `${planted.program}`,
    ];
    for (const address of addresses) {
      git(work, "config", "--local", "remote.origin.url", address);
      git(work, "config", "--local", "remote.origin.pushurl", address);
      const strict = createGitTools().push(create(PushRequestSchema, { path: work }), test.context);
      expect([address, (await faultOf(strict)).reason]).toEqual([address, ErrorReason.TOOL_FAILED]);
    }
    expectNothingRan();
  });
});
