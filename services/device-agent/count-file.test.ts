import { mkdtemp, readFile, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openAttachCount } from "./count-file.ts";

let folder: string;

beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-count-"));
});

afterEach(() => rm(folder, { recursive: true }));

test("counts from 1, and on after a restart", async () => {
  const first = await openAttachCount(folder);
  expect([await first.next(), await first.next()]).toEqual([1n, 2n]);
  expect(await (await openAttachCount(folder)).next()).toBe(3n);
});

test("has each number on disk before it gives it out", async () => {
  const count = await openAttachCount(folder);
  const number = await count.next();
  expect(await readFile(join(folder, "attach-count"), "utf8")).toBe(`${number}\n`);
});

test("gives out no number that it could not write", async () => {
  const count = await openAttachCount(folder);
  await count.next();
  await rm(folder, { recursive: true });
  await expect(count.next()).rejects.toThrow("ENOENT");
  folder = await mkdtemp(join(tmpdir(), "reeve-count-"));
});

test.each(["", "x\n", "-1\n", "1", "1\n2\n"])("refuses a file that holds no count: %j", async (text) => {
  await writeFile(join(folder, "attach-count"), text);
  await expect(openAttachCount(folder)).rejects.toThrow("holds no count of dials");
});
