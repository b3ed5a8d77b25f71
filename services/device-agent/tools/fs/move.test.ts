import {
  existsSync,
  linkSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from "node:fs";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { FileType } from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { createTestContext, faultOf, type TestContext } from "../testing/context.ts";
import { fileToolsIn } from "../testing/file-tools.ts";

const { PATH_OUTSIDE_ROOTS, OS_REFUSED, TARGET_NOT_FOUND } = ErrorReason;

let test: TestContext;
let context: TestContext["context"];
beforeEach(() => {
  test = createTestContext();
  context = test.context;
});
afterEach(() => test[Symbol.dispose]());

const at = (name: string): string => join(test.folder, name);
const { move } = fileToolsIn(() => context);

function tree(...paths: string[]): void {
  for (const path of paths) {
    mkdirSync(join(at(path), ".."), { recursive: true });
    writeFileSync(at(path), path);
  }
}

describe("move", () => {
  it("renames a file, which stays the same file", async () => {
    tree("a");
    const { ino } = statSync(at("a"));
    expect(await move({ path: at("a"), to: at("b") })).toEqual({ type: FileType.FILE, replaced: false });
    expect(readdirSync(test.folder)).toEqual(["b"]);
    expect(statSync(at("b")).ino).toBe(ino);
  });

  it("moves a folder with all in it, into folders that it makes where it is asked to", async () => {
    tree("d/a", "d/e/b");
    expect(await faultOf(move({ path: at("d"), to: at("x/y/d") }))).toMatchObject({ reason: TARGET_NOT_FOUND });
    expect(await move({ path: at("d"), to: at("x/y/d"), createFolders: true })).toMatchObject({
      type: FileType.DIRECTORY,
    });
    expect(readFileSync(at("x/y/d/e/b"), "utf8")).toBe("d/e/b");
    expect(existsSync(at("d"))).toBe(false);
  });

  it("moves from one granted folder to another", async () => {
    using other = createTestContext();
    using both = createTestContext({ write: [test.folder, other.folder], workDir: test.folder });
    context = both.context;
    tree("a");
    await move({ path: at("a"), to: join(other.folder, "b") });
    expect(readFileSync(join(other.folder, "b"), "utf8")).toBe("a");
  });

  it.each(["b", "full", "hollow", "link"])("replaces nothing unless it is asked to: %s", async (name) => {
    tree("a", "b", "full/c", "d/e");
    mkdirSync(at("hollow"));
    symlinkSync("nowhere", at("link"));
    for (const path of ["a", "d"])
      expect(await faultOf(move({ path: at(path), to: at(name) }))).toMatchObject({
        reason: OS_REFUSED,
        metadata: { field: "to", errno: "EEXIST" },
      });
    expect(readdirSync(test.folder)).toEqual(["a", "b", "d", "full", "hollow", "link"]);
    expect(readFileSync(at("b"), "utf8")).toBe("b");
  });

  it("replaces a file where it is asked to, and nothing else", async () => {
    tree("a", "b", "c", "d/e");
    symlinkSync("c", at("link"));
    expect(await move({ path: at("a"), to: at("b"), overwrite: true })).toMatchObject({ replaced: true });
    expect(readFileSync(at("b"), "utf8")).toBe("a");
    expect(await move({ path: at("b"), to: at("new"), overwrite: true })).toMatchObject({ replaced: false });
    expect(await faultOf(move({ path: at("new"), to: at("d"), overwrite: true }))).toMatchObject({
      reason: OS_REFUSED,
    });
    expect(await faultOf(move({ path: at("d"), to: at("c"), overwrite: true }))).toMatchObject({ reason: OS_REFUSED });
    expect(await faultOf(move({ path: at("new"), to: at("link"), overwrite: true }))).toMatchObject({
      reason: PATH_OUTSIDE_ROOTS,
    });
    expect(readdirSync(test.folder)).toEqual(["c", "d", "link", "new"]);
  });

  it("leaves what it cannot move, and nothing in the new place", async () => {
    tree("d/a");
    expect(await faultOf(move({ path: at("d"), to: at("d/e") }))).toMatchObject({ metadata: { errno: "EINVAL" } });
    expect(await faultOf(move({ path: at("none"), to: at("x") }))).toMatchObject({ reason: TARGET_NOT_FOUND });
    expect(readdirSync(test.folder)).toEqual(["d"]);
    expect(readdirSync(at("d"))).toEqual(["a"]);
  });

  it("moves no link, and no file with several names", async () => {
    tree("a", "b");
    symlinkSync("a", at("link"));
    linkSync(at("b"), at("hard"));
    for (const name of ["link", "hard"])
      expect(await faultOf(move({ path: at(name), to: at("x") }))).toMatchObject({ reason: PATH_OUTSIDE_ROOTS });
    expect(existsSync(at("x"))).toBe(false);
  });

  it.each(["d/.ssh/config", "d/.config/gcloud/token", "d/e/.env"])(
    "moves no folder with a secret: %s",
    async (secret) => {
      tree("d/a", secret);
      expect(await faultOf(move({ path: at("d"), to: at("x") }))).toMatchObject({ reason: PATH_OUTSIDE_ROOTS });
      expect(await faultOf(move({ path: at(secret), to: at("x") }))).toMatchObject({ reason: PATH_OUTSIDE_ROOTS });
      expect(existsSync(at("x"))).toBe(false);
    },
  );

  it("puts nothing into a place of secrets, also not by the name that a folder gets", async () => {
    tree("a", "d/gcloud/token");
    expect(await faultOf(move({ path: at("a"), to: at(".env") }))).toMatchObject({ reason: PATH_OUTSIDE_ROOTS });
    expect(await faultOf(move({ path: at("d"), to: at(".config") }))).toMatchObject({ reason: PATH_OUTSIDE_ROOTS });
    expect(readdirSync(test.folder)).toEqual(["a", "d"]);
  });

  it("moves no granted folder, nothing that holds one or the agent's own, and nothing out of the roots", async () => {
    tree("d/inner/a", "s/state/key", "b");
    using other = createTestContext({
      write: [test.folder, at("d/inner")],
      workDir: test.folder,
      deny: [at("s/state")],
    });
    context = other.context;
    for (const path of [test.folder, at("d"), at("d/inner"), at("s"), at("s/state/key")])
      expect((await faultOf(move({ path, to: at("x") }))).reason).toBe(PATH_OUTSIDE_ROOTS);
    for (const to of ["/tmp/reeve-escaped", at("../escaped"), at("s/state/b")])
      expect(await faultOf(move({ path: at("b"), to }))).toMatchObject({
        reason: PATH_OUTSIDE_ROOTS,
        metadata: { field: "to" },
      });
    expect(existsSync(at("b"))).toBe(true);
  });

  it("needs both folders to be writable", async () => {
    tree("a");
    using other = createTestContext();
    using half = createTestContext({ read: [test.folder], write: [other.folder], workDir: other.folder });
    context = half.context;
    writeFileSync(join(other.folder, "b"), "b");
    const out = move({ path: at("a"), to: join(other.folder, "a") });
    expect(await faultOf(out)).toMatchObject({ metadata: { field: "path" } });
    expect(await faultOf(move({ path: join(other.folder, "b"), to: at("b") }))).toMatchObject({
      metadata: { field: "to" },
    });
  });
});
