import { mkdtemp, readdir, rm, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { setImmediate as turn } from "node:timers/promises";
import { afterEach, beforeEach, expect, test } from "vitest";
import { withLock } from "./lock.ts";

let folder: string;
let path: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-lock-"));
  path = join(folder, "new", "lock");
});
afterEach(() => rm(folder, { recursive: true }));

test("lets in one after the other, also after one that failed, and leaves nothing behind", async () => {
  let inside = 0;
  let most = 0;
  const run = async (fails: boolean) => {
    most = Math.max(most, ++inside);
    await turn();
    inside--;
    if (fails) throw new Error("failed");
  };
  const ends = await Promise.allSettled(
    Array.from({ length: 12 }, (_, n) => withLock(path, {}, () => run(n % 3 === 0))),
  );
  expect(most).toBe(1);
  expect(ends.filter(({ status }) => status === "rejected")).toHaveLength(4);
  expect(await readdir(join(folder, "new"))).toEqual([]);
});

test("breaks a lock that a dead process left, and lets in only one by it", async () => {
  path = join(folder, "lock");
  await writeFile(path, "");
  const longAgo = new Date(Date.now() - 60_000);
  await utimes(path, longAgo, longAgo);
  let inside = 0;
  let most = 0;
  const run = async () => {
    most = Math.max(most, ++inside);
    await turn();
    inside--;
  };
  await Promise.all(Array.from({ length: 8 }, () => withLock(path, {}, run)));
  expect([most, await readdir(folder)]).toEqual([1, []]);
});

test("gives up on one that is held, and does not take it away", async () => {
  path = join(folder, "lock");
  await writeFile(path, "");
  await expect(withLock(path, { waitMs: 60 }, async () => "in")).rejects.toThrow("held by another process");
  expect(await readdir(folder)).toEqual(["lock"]);
});
