import { mkdtemp, readdir, readFile, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { replaceFile } from "./replace-file.ts";

let folder = "";
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-replace-"));
});
afterEach(() => rm(folder, { recursive: true, force: true }));

test("makes and replaces a file for its owner's eyes, and leaves nothing else behind", async () => {
  const path = join(folder, "a");
  await replaceFile(path, "one");
  await replaceFile(path, Buffer.from("two"));
  expect(await readFile(path, "utf8")).toBe("two");
  expect((await stat(path)).mode & 0o777).toBe(0o600);
  expect(await readdir(folder)).toEqual(["a"]);
});

test("leaves the old file where it cannot be replaced", async () => {
  await writeFile(join(folder, "b"), "old");
  await expect(replaceFile(join(folder, "b", "c"), "new")).rejects.toThrow("ENOTDIR");
  expect(await readdir(folder)).toEqual(["b"]);
  await expect(replaceFile(join(folder, "none", "c"), "new")).rejects.toThrow("ENOENT");
});
