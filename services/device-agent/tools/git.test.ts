import { execFileSync } from "node:child_process";
import {
  chmodSync,
  cpSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  realpathSync,
  rmSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { CloneRequestSchema, CommitRequestSchema, PushRequestSchema } from "../../../gen/ts/reeve/tools/v1/git_pb.ts";
import { unknownSetting } from "./git/check-repository.ts";
import { createGitTools } from "./git.ts";
import { createGitPreviews } from "./preview/git.ts";
import { createTestContext, faultOf, type TestContext } from "./testing/context.ts";

const tools = createGitTools({ allowFileProtocol: true });
const WHO = { authorName: "Ada", authorEmail: "ada@example.com" };

let test: TestContext;
beforeEach(() => {
  test = createTestContext();
});
afterEach(() => test[Symbol.dispose]());

function git(cwd: string, ...args: string[]): string {
  const env = { PATH: process.env.PATH ?? "", HOME: "/nonexistent", GIT_CONFIG_NOSYSTEM: "1" };
  const who = ["-c", "user.name=Setup", "-c", "user.email=setup@example.com", "-c", "init.defaultBranch=main"];
  return execFileSync("git", [...who, ...args], { cwd, env, encoding: "utf8" }).trim();
}

/** A bare repository with one commit, and a clone of it. */
function repositories(): { bare: string; work: string } {
  const [seed, bare, work] = ["seed", "bare.git", "work"].map((name) => join(test.folder, name)) as [
    string,
    string,
    string,
  ];
  mkdirSync(seed);
  git(seed, "init", "-q");
  writeFileSync(join(seed, "a.txt"), "one\n");
  git(seed, "add", ".");
  git(seed, "commit", "-qm", "first");
  git(test.folder, "clone", "-q", "--bare", seed, bare);
  git(test.folder, "clone", "-q", bare, work);
  return { bare, work };
}

const clone = (input: object) => tools.clone(create(CloneRequestSchema, input), test.context);
const commit = (input: object) => tools.commit(create(CommitRequestSchema, input), test.context);
const push = (input: object) => tools.push(create(PushRequestSchema, input), test.context);

const previews = createGitPreviews({ allowFileProtocol: true });
const preview = async (input: object) =>
  (await previews.push?.(create(PushRequestSchema, input), test.context)) ?? expect.fail();

describe("clone", () => {
  it("makes the folder and says what is checked out", async () => {
    const { bare, work } = repositories();
    const path = join(test.folder, "copy");
    const answer = await clone({ url: `file://${bare}`, path, depth: 1 });
    expect(answer).toEqual({ commit: git(work, "rev-parse", "HEAD"), branch: "main" });
    expect(readFileSync(join(path, "a.txt"), "utf8")).toBe("one\n");
  });

  it("clones an empty repository", async () => {
    git(test.folder, "init", "-q", "--bare", "empty.git");
    const answer = await clone({ url: `file://${test.folder}/empty.git`, path: join(test.folder, "copy") });
    expect(answer).toEqual({ commit: "", branch: "main" });
  });

  it("refuses a path that exists or lies outside", async () => {
    const { bare } = repositories();
    const url = `file://${bare}`;
    expect((await faultOf(clone({ url, path: bare }))).metadata).toMatchObject({ errno: "EEXIST" });
    expect((await faultOf(clone({ url, path: "/elsewhere" }))).reason).toBe(ErrorReason.PATH_OUTSIDE_ROOTS);
  });

  it("fails in git's words", async () => {
    const fault = await faultOf(clone({ url: `file://${test.folder}/none.git`, path: join(test.folder, "copy") }));
    expect(fault).toMatchObject({ reason: ErrorReason.TOOL_FAILED, metadata: { program: "git", exit_code: "128" } });
    expect(fault.message).toContain("does not appear to be a git repository");
  });

  it.each(["ext::sh -c 'touch pwned'", "--upload-pack=touch pwned", "file:///x", "git://x/y", "/etc"])(
    "runs nothing for the address %j",
    async (url) => {
      const strict = createGitTools();
      const input = create(CloneRequestSchema, { url, path: join(test.folder, "copy") });
      const fault = await faultOf(strict.clone(input, test.context));
      expect([ErrorReason.INVALID_INPUT, ErrorReason.TOOL_FAILED]).toContain(fault.reason);
      expect(existsSync(join(test.folder, "pwned"))).toBe(false);
      expect(existsSync(join(test.folder, "copy"))).toBe(false);
    },
  );
});

describe("commit", () => {
  it("commits every change to tracked files where no path is given", async () => {
    const { work } = repositories();
    writeFileSync(join(work, "a.txt"), "two\n");
    writeFileSync(join(work, "new.txt"), "untracked\n");
    const answer = await commit({ path: work, message: "change\n\nbody", ...WHO });
    expect(answer).toEqual({ commit: git(work, "rev-parse", "HEAD"), branch: "main", filesChanged: 1 });
    expect(git(work, "log", "-1", "--format=%an <%ae> %cn|%B")).toBe("Ada <ada@example.com> Ada|change\n\nbody");
    expect(git(work, "status", "--porcelain")).toBe("?? new.txt");
  });

  it("commits only the given paths, deletions and odd names too", async () => {
    const { work } = repositories();
    mkdirSync(join(work, "dir"));
    writeFileSync(join(work, "dir/*.txt"), "x");
    writeFileSync(join(work, "dir/b.txt"), "x");
    writeFileSync(join(work, "staged.txt"), "x");
    git(work, "add", "staged.txt");
    git(work, "rm", "-q", "--cached", "a.txt");
    const answer = await commit({ path: work, message: "m", paths: ["dir/*.txt"], ...WHO });
    expect(answer.filesChanged).toBe(1);
    expect(git(work, "show", "--name-only", "--format=", "HEAD")).toBe("dir/*.txt");
  });

  it("says in git's words that there is nothing to commit, or that no author is set up", async () => {
    const { work } = repositories();
    const nothing = await faultOf(commit({ path: work, message: "m", ...WHO }));
    expect(nothing).toMatchObject({ reason: ErrorReason.TOOL_FAILED, metadata: { exit_code: "1" } });
    expect(nothing.message).toContain("nothing to commit");
    writeFileSync(join(work, "a.txt"), "two\n");
    const anonymous = await faultOf(commit({ path: work, message: "m" }));
    expect(anonymous.reason).toBe(ErrorReason.TOOL_FAILED);
    expect(anonymous.message).toContain("who you are");
  });

  it("runs none of the repository's programs", async () => {
    const { work } = repositories();
    const hook = join(work, ".git/hooks/pre-commit");
    mkdirSync(join(work, ".git/hooks"), { recursive: true });
    writeFileSync(hook, "#!/bin/sh\ntouch ../pwned\n");
    chmodSync(hook, 0o755);
    writeFileSync(join(work, "a.txt"), "two\n");
    await commit({ path: work, message: "m", ...WHO });
    expect(existsSync(join(test.folder, "pwned"))).toBe(false);
  });

  describe("with a part outside of the roots", () => {
    let outside: string;
    beforeEach(() => {
      outside = realpathSync(mkdtempSync(join(tmpdir(), "reeve-outside-")));
    });
    afterEach(() => rmSync(outside, { recursive: true }));

    const refusal = async (work: string) => {
      writeFileSync(join(work, "a.txt"), "two\n");
      return await faultOf(commit({ path: work, message: "m", ...WHO }));
    };

    it.each<[string, (work: string) => void]>([
      [
        "a git folder that is shared",
        (work) => {
          cpSync(join(work, ".git"), join(outside, "shared"), { recursive: true });
          writeFileSync(join(work, ".git", "commondir"), join(outside, "shared"));
        },
      ],
      [
        "a work tree of another repository",
        (work) => {
          git(outside, "clone", "-q", work, "other");
          git(join(outside, "other"), "worktree", "add", "-q", "--detach", join(work, "tree"));
          cpSync(join(work, "tree", ".git"), join(work, ".git-file"));
          rmSync(join(work, ".git"), { recursive: true });
          cpSync(join(work, ".git-file"), join(work, ".git"));
        },
      ],
      [
        "a store that objects are borrowed from",
        (work) => {
          mkdirSync(join(work, ".git/objects/info"), { recursive: true });
          writeFileSync(join(work, ".git/objects/info/alternates"), `# x\n${outside}\n`);
        },
      ],
      [
        "a list of stores",
        (work) => {
          writeFileSync(join(outside, "list"), "/srv\n");
          mkdirSync(join(work, ".git/objects/info"), { recursive: true });
          symlinkSync(join(outside, "list"), join(work, ".git/objects/info/alternates"));
        },
      ],
      [
        "its branches",
        (work) => {
          cpSync(join(work, ".git/refs"), join(outside, "refs"), { recursive: true });
          rmSync(join(work, ".git/refs"), { recursive: true });
          symlinkSync(join(outside, "refs"), join(work, ".git/refs"));
        },
      ],
    ])("refuses a repository with %s there", async (_, spoil) => {
      const { work } = repositories();
      spoil(work);
      expect((await refusal(work)).reason).toBe(ErrorReason.PATH_OUTSIDE_ROOTS);
    });

    it("takes a repository whose parts all lie inside", async () => {
      const { work } = repositories();
      git(test.folder, "clone", "-q", "--shared", work, "borrowing");
      git(work, "worktree", "add", "-q", "-b", "side", join(test.folder, "tree"));
      for (const folder of ["borrowing", "tree"]) {
        writeFileSync(join(test.folder, folder, "a.txt"), "two\n");
        const answer = await commit({ path: join(test.folder, folder), message: "m", ...WHO });
        expect(answer.filesChanged).toBe(1);
      }
    });
  });

  it.each([
    "filter.x.clean",
    "core.fsmonitor",
    "core.sshCommand",
    "core.worktree",
    "include.path",
    "credential.helper",
  ])("refuses a repository that sets %s", async (setting) => {
    const { work } = repositories();
    git(work, "config", setting, "touch ../pwned");
    writeFileSync(join(work, ".gitattributes"), "* filter=x\n");
    const fault = await faultOf(commit({ path: work, message: "m", paths: [".gitattributes"], ...WHO }));
    expect(fault.reason).toBe(ErrorReason.TOOL_FAILED);
    expect((await faultOf(preview({ path: work }))).reason).toBe(ErrorReason.TOOL_FAILED);
    expect(existsSync(join(test.folder, "pwned"))).toBe(false);
  });

  it("takes no repository from above, and none whose git folder is elsewhere", async () => {
    const { work } = repositories();
    mkdirSync(join(work, "sub"));
    expect((await faultOf(commit({ path: join(work, "sub"), message: "m", ...WHO }))).message).toContain(
      "not a git repository",
    );
    using other = createTestContext();
    git(other.folder, "init", "-q", "repo");
    const elsewhere = join(test.folder, "elsewhere");
    mkdirSync(elsewhere);
    writeFileSync(join(elsewhere, ".git"), `gitdir: ${other.folder}/repo/.git\n`);
    expect((await faultOf(commit({ path: elsewhere, message: "m", ...WHO }))).reason).toBe(
      ErrorReason.PATH_OUTSIDE_ROOTS,
    );
  });

  it("refuses paths that leave the work tree", async () => {
    const { work } = repositories();
    symlinkSync(test.folder, join(work, "link"));
    for (const paths of [["../bare.git/HEAD"], ["link/bare.git/HEAD"], [".git/config"]]) {
      expect((await faultOf(commit({ path: work, message: "m", paths, ...WHO }))).reason).toBe(ErrorReason.TOOL_FAILED);
    }
  });
});

describe("push", () => {
  it("pushes the branch that is checked out and names the commit", async () => {
    const { bare, work } = repositories();
    writeFileSync(join(work, "a.txt"), "two\n");
    const { commit: made } = await commit({ path: work, message: "m", ...WHO });
    const answer = await push({ path: work });
    expect(answer).toMatchObject({ commit: made, branch: "main" });
    expect(answer.output).toContain("main");
    expect(git(bare, "rev-parse", "main")).toBe(made);
  });

  it("is previewed by what would be sent, and sends nothing for that", async () => {
    const { bare, work } = repositories();
    const before = git(bare, "rev-parse", "main");
    git(work, "commit", "-q", "--allow-empty", "-m", "second");
    const head = git(work, "rev-parse", "HEAD");
    expect(await preview({ path: work })).toEqual([
      { name: "remote", value: `origin: ${bare}` },
      { name: "branch", value: `main at ${head}` },
      { name: "pushes", value: `1 commits; the remote was last seen at ${before}` },
      { name: "commits", value: `${git(work, "rev-parse", "--short", "HEAD")} Setup: second` },
    ]);
    git(work, "branch", "other");
    const other = await preview({ path: work, branch: "other" });
    expect(other.map(({ value }) => value)).toContain("1 commits; the remote had no such branch when it was last seen");
    expect(git(bare, "rev-parse", "main")).toBe(before);
  });

  it("is previewed without a word to the remote, also where objects are missing", async () => {
    const { bare, work } = repositories();
    git(bare, "config", "uploadpack.allowFilter", "true");
    git(work, "config", "remote.origin.promisor", "true");
    git(work, "config", "extensions.partialClone", "origin");
    const head = git(work, "rev-parse", "HEAD");
    rmSync(join(work, ".git/objects"), { recursive: true });
    mkdirSync(join(work, ".git/objects"));
    expect((await faultOf(preview({ path: work }))).reason).toBe(ErrorReason.TOOL_FAILED);
    // Nothing was fetched.
    expect(readdirSync(join(work, ".git/objects")).filter((name) => name.length === 2)).toEqual([]);
    expect(git(bare, "rev-parse", "main")).toBe(head);
  });

  it("never overwrites what the remote has", async () => {
    const { bare, work } = repositories();
    const before = git(bare, "rev-parse", "main");
    git(work, "commit", "-q", "--amend", "-m", "rewritten");
    const fault = await faultOf(push({ path: work, branch: "main" }));
    expect(fault.reason).toBe(ErrorReason.TOOL_FAILED);
    expect(fault.message).toContain("non-fast-forward");
    expect(git(bare, "rev-parse", "main")).toBe(before);
  });

  it("distinguishes an unknown branch, an unknown remote and a detached head", async () => {
    const { work } = repositories();
    expect((await faultOf(push({ path: work, branch: "none" }))).reason).toBe(ErrorReason.TOOL_FAILED);
    expect((await faultOf(push({ path: work, remote: "nowhere" }))).reason).toBe(ErrorReason.TOOL_FAILED);
    git(work, "checkout", "-q", "--detach");
    expect((await faultOf(push({ path: work }))).metadata).toMatchObject({ field: "branch" });
  });

  it("does not reach a repository on the disk unless that is allowed", async () => {
    const { work } = repositories();
    const fault = await faultOf(createGitTools().push(create(PushRequestSchema, { path: work }), test.context));
    expect(fault.message).toContain("not allowed");
  });
});

it("looks only at a repository's own settings", () => {
  expect(unknownSetting("global\0alias.x\0local\0core.bare\0command\0core.hookspath\0")).toBeUndefined();
  expect(unknownSetting("local\0Remote.a.URL\0worktree\0diff.x.textconv\0")).toBe("diff.x.textconv");
});
