import { existsSync, mkdirSync, readdirSync, symlinkSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { DeleteRequestSchema, FileType } from "../../../../gen/ts/reeve/tools/v1/file_system_pb.ts";
import { createTestContext, faultOf, type TestContext } from "../testing/context.ts";
import { deletePath } from "./delete.ts";

let test: TestContext;
beforeEach(() => {
  test = createTestContext();
});
afterEach(() => test[Symbol.dispose]());

const at = (name: string): string => join(test.folder, name);
const remove = (input: MessageInitShape<typeof DeleteRequestSchema>, context = test.context) =>
  deletePath(create(DeleteRequestSchema, input), context);

/** Makes files with the folders above them. */
function tree(...paths: string[]): void {
  for (const path of paths) {
    mkdirSync(join(at(path), ".."), { recursive: true });
    writeFileSync(at(path), path);
  }
}

describe("delete", () => {
  it("deletes a file, and a symbolic link itself", async () => {
    tree("a", "kept");
    symlinkSync(at("kept"), at("link"));
    expect(await remove({ path: at("a") })).toEqual({ type: FileType.FILE, deleted: 1n });
    expect(await remove({ path: at("link") })).toEqual({ type: FileType.SYMLINK, deleted: 1n });
    expect(readdirSync(test.folder)).toEqual(["kept"]);
  });

  it("deletes a folder with content only where it is asked to", async () => {
    tree("d/a", "d/e/b");
    symlinkSync("/etc", at("d/etc"));
    expect(await faultOf(remove({ path: at("d") }))).toMatchObject({
      reason: ErrorReason.OS_REFUSED,
      metadata: { errno: "ENOTEMPTY" },
    });
    expect(await remove({ path: at("d"), recursive: true })).toEqual({ type: FileType.DIRECTORY, deleted: 5n });
    expect(existsSync("/etc/passwd")).toBe(true);
    expect(readdirSync(test.folder)).toEqual([]);
  });

  it("deletes an empty folder without being asked twice", async () => {
    mkdirSync(at("d"));
    expect(await remove({ path: at("d") })).toEqual({ type: FileType.DIRECTORY, deleted: 1n });
  });

  it("says that there is nothing", async () => {
    expect(await faultOf(remove({ path: at("none") }))).toMatchObject({ reason: ErrorReason.TARGET_NOT_FOUND });
  });

  it.each(["", "/.", "/d/.."])("never deletes a granted folder itself (root%s)", async (suffix) => {
    tree("d/a");
    const fault = await faultOf(remove({ path: `${test.folder}${suffix}`, recursive: true }));
    expect([ErrorReason.PATH_OUTSIDE_ROOTS, ErrorReason.OS_REFUSED]).toContain(fault.reason);
    expect(existsSync(at("d/a"))).toBe(true);
  });

  it("never deletes a folder that holds a granted one", async () => {
    tree("d/inner/a");
    using other = createTestContext({ write: [test.folder, at("d/inner")], workDir: test.folder });
    expect(await faultOf(remove({ path: at("d"), recursive: true }, other.context))).toMatchObject({
      reason: ErrorReason.PATH_OUTSIDE_ROOTS,
    });
    expect(existsSync(at("d/inner/a"))).toBe(true);
  });

  it.each(["d/.ssh/config", "d/e/.env", "d/id_ed25519"])(
    "deletes nothing where a secret is in it: %s",
    async (secret) => {
      tree("d/a", secret);
      expect(await faultOf(remove({ path: at("d"), recursive: true }))).toMatchObject({
        reason: ErrorReason.PATH_OUTSIDE_ROOTS,
      });
      expect(existsSync(at("d/a"))).toBe(true);
      expect(existsSync(at(secret))).toBe(true);
      expect(await faultOf(remove({ path: at(secret) }))).toMatchObject({ reason: ErrorReason.PATH_OUTSIDE_ROOTS });
    },
  );

  it("deletes nothing where the agent's own folder is in it", async () => {
    tree("d/a", "d/state/key");
    using other = createTestContext({ write: [test.folder], workDir: test.folder, deny: [at("d/state")] });
    await faultOf(remove({ path: at("d"), recursive: true }, other.context));
    expect(existsSync(at("d/a"))).toBe(true);
  });

  it("goes through no symbolic link, and out of no root", async () => {
    tree("real/a");
    symlinkSync(at("real"), at("link"));
    for (const path of [at("link/a"), "/etc/hostname", at("../x")]) {
      expect(await faultOf(remove({ path, recursive: true }))).toMatchObject({
        reason: ErrorReason.PATH_OUTSIDE_ROOTS,
      });
    }
    expect(existsSync(at("real/a"))).toBe(true);
  });

  it("needs a folder that may be written", async () => {
    tree("a");
    using other = createTestContext({ read: [test.folder], write: [], workDir: test.folder });
    expect(await faultOf(remove({ path: at("a") }, other.context))).toMatchObject({
      reason: ErrorReason.PATH_OUTSIDE_ROOTS,
    });
  });

  it("stops with its call", async () => {
    tree("d/a");
    const signal = AbortSignal.abort();
    await faultOf(remove({ path: at("d"), recursive: true }, { ...test.context, signal }));
    expect(existsSync(at("d/a"))).toBe(true);
  });
});
