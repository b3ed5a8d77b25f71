import { mkdirSync, mkdtempSync, realpathSync, rmSync, symlinkSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, expect, it } from "vitest";
import { defaultReadRoots } from "./default-read-roots.ts";

const base = realpathSync(mkdtempSync(join(tmpdir(), "reeve-default-")));
const home = join(base, "home", "me");
mkdirSync(join(home, "work"), { recursive: true });
symlinkSync(home, join(base, "link"));
afterAll(() => rmSync(base, { recursive: true }));

it("is the folder that the agent is started in", () => {
  expect(defaultReadRoots(join(home, "work"), home)).toEqual([join(home, "work")]);
  expect(defaultReadRoots(join(base, "link", "work"), home)).toEqual([join(home, "work")]);
  expect(defaultReadRoots("/usr", home)).toEqual(["/usr"]);
});

it("is empty where that folder is the home folder or holds it", () => {
  for (const folder of [home, join(base, "link"), join(base, "home"), base, "/"])
    expect(defaultReadRoots(folder, home)).toEqual([]);
  expect(defaultReadRoots(home, join(base, "link"))).toEqual([]);
});
