import { chmod, mkdir, mkdtemp, realpath, rm, stat, symlink } from "node:fs/promises";
import { tmpdir } from "node:os";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, expect, test } from "vitest";
import { openSocketFolder } from "./socket-folder.ts";

let folder: string;
beforeEach(async () => {
  folder = await realpath(await mkdtemp(join(tmpdir(), "reeve-sock-")));
});
afterEach(() => rm(folder, { recursive: true }));

const modeOf = async (path: string) => (await stat(path)).mode & 0o777;

test("is the data folder's own, and closed to others whatever it was before", async () => {
  await mkdir(join(folder, "sockets"));
  await chmod(join(folder, "sockets"), 0o755);
  const { path } = await openSocketFolder(folder, {});
  expect([path, await modeOf(path)]).toEqual([join(folder, "sockets"), 0o700]);
});

test.each([undefined, "relative"])(
  "is a new one elsewhere where the path is too long for a socket: %s",
  async (dir) => {
    const deep = join(folder, "d".repeat(100));
    await mkdir(deep);
    const runtime = dir ?? folder;
    const { path, close } = await openSocketFolder(deep, { XDG_RUNTIME_DIR: runtime });
    expect(dirname(path)).toBe(dir === undefined ? folder : tmpdir());
    expect(await modeOf(path)).toBe(0o700);
    await close();
    await expect(stat(path)).rejects.toThrow("ENOENT");
  },
);

test("is refused where a link or a file stands in its place", async () => {
  await symlink(tmpdir(), join(folder, "sockets"));
  await expect(openSocketFolder(folder, {})).rejects.toThrow("no folder of this user");
});
