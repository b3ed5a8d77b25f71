import { chmodSync, mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { programFolders } from "./program-folders.ts";

const top = realpathSync(mkdtempSync(join(tmpdir(), "reeve-path-")));
afterAll(() => rmSync(top, { recursive: true }));

/** A folder with the program `tool` in it. */
function folder(name: string, mode = 0o755, programMode = 0o755): string {
  const path = join(top, name);
  mkdirSync(path, { recursive: true });
  writeFileSync(join(path, "tool"), "#!/bin/sh\n");
  chmodSync(join(path, "tool"), programMode);
  chmodSync(path, mode);
  return path;
}

it("takes folders that only root and the agent's user may write, in the order of the PATH", () => {
  const own = folder("own");
  const { folders, dropped } = programFolders(`/usr/bin:${own}:/usr/bin:/no/such/folder`, []);
  expect({ folders, dropped }).toEqual({ folders: ["/usr/bin", own], dropped: [] });
});

it("drops relative folders, those in a write root, and those that others may write, by their real paths", () => {
  const work = join(top, "work");
  const inRoot = folder("work/bin");
  const link = join(top, "link");
  symlinkSync(inRoot, link);
  const open = folder("open", 0o777);
  const group = folder("group", 0o775);
  const below = folder("open/below");
  const { folders, dropped } = programFolders(`bin:.:${inRoot}:${link}:${open}:${group}:${below}:/usr/bin`, [work]);
  expect(folders).toEqual(["/usr/bin"]);
  expect(dropped).toEqual([
    { folder: "bin", why: "is a relative path" },
    { folder: ".", why: "is a relative path" },
    { folder: inRoot, why: `lies in ${work}, which may be written` },
    { folder: link, why: `lies in ${work}, which may be written` },
    { folder: open, why: "may be written by other users" },
    { folder: group, why: "may be written by other users" },
    { folder: below, why: `lies in ${open}, which other users may write` },
  ]);
});

it("takes no program that others may write, that leads into a write root, or that cannot be run", () => {
  const work = join(top, "write");
  const planted = join(folder("write"), "tool");
  const good = folder("good");
  symlinkSync(planted, join(good, "planted"));
  const { isProgram } = programFolders(good, [work]);
  expect(isProgram(join(good, "tool"))).toBe(true);
  expect(isProgram(join(good, "planted"))).toBe(false);
  expect(isProgram(join(good, "missing"))).toBe(false);
  expect(isProgram(join(folder("loose", 0o755, 0o757), "tool"))).toBe(false);
  expect(isProgram(join(folder("text", 0o755, 0o644), "tool"))).toBe(false);
});
