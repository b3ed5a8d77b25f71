import { chmod, mkdir, mkdtemp, rename, rm, symlink, utimes, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { acceptanceOf, acceptedText, isAccepted, readAccepted } from "./accepted.ts";
import { isUnchanged, type Plugin, readPlugin } from "./plugin.ts";
import { problemText } from "./problem.ts";

const MANIFEST = {
  name: "demo",
  tools: [{ name: "run", description: "Runs.", command: "./bin/run.sh", work_dir: "data" }],
};

let folder: string;
let file: (path: string) => string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-plugin-"));
  file = (path) => join(folder, path);
  await mkdir(file("bin"));
  await mkdir(file("data"));
  await writeFile(file("bin/run.sh"), "#!/bin/sh\n");
  await chmod(file("bin/run.sh"), 0o755);
  await writeFile(file("data/table"), "1\n");
  await writeFile(file("plugin.json"), JSON.stringify(MANIFEST));
});
afterEach(() => rm(folder, { recursive: true }));

async function plugin(): Promise<Plugin> {
  const read = await readPlugin(folder);
  if (!read.ok) throw new Error(read.problems.map(problemText).join("\n"));
  return read.plugin;
}

const problems = async () => {
  const read = await readPlugin(folder);
  return read.ok ? [] : read.problems.map(problemText);
};

describe("a plugin's digest", () => {
  test("is that of its files, wherever they lie and whenever they were made", async () => {
    const { digest } = await plugin();
    await utimes(file("bin/run.sh"), 1, 1);
    await rename(folder, `${folder}-2`);
    folder = `${folder}-2`;
    expect((await plugin()).digest).toBe(digest);
  });

  test.each([
    ["a file's content", () => writeFile(file("bin/run.sh"), "#!/bin/sh\ntrue\n")],
    ["a new file", () => writeFile(file("data/new"), "")],
    ["a file's name", () => rename(file("data/table"), file("data/other"))],
    ["that a file can be run", () => chmod(file("plugin.json"), 0o755)],
    ["a tool's schema", () => writeFile(file("plugin.json"), JSON.stringify(MANIFEST).replace("Runs.", "Runs"))],
  ])("changes with %s", async (_, change) => {
    const before = await plugin();
    expect(await isUnchanged(before)).toBe(true);
    await change();
    expect(await isUnchanged(before)).toBe(false);
    expect((await plugin()).digest).not.toBe(before.digest);
  });

  test("is compared where only a time has changed, and found the same", async () => {
    const before = await plugin();
    await utimes(file("bin/run.sh"), 1, 1);
    expect(await isUnchanged(before)).toBe(true);
  });
});

describe("a folder is refused with", () => {
  test.each<readonly [string, () => Promise<unknown>, string]>([
    ["no plugin.json", () => rm(file("plugin.json")), "it has no plugin.json"],
    ["a symbolic link", () => symlink("/etc/passwd", file("data/link")), "data/link is neither a file nor a folder"],
    ["a file that others may change", () => chmod(file("bin/run.sh"), 0o777), "bin/run.sh may be changed by others"],
    ["a program that is missing", () => rm(file("bin/run.sh")), "line 1: command: bin/run.sh is no file"],
    ["a program that cannot be run", () => chmod(file("bin/run.sh"), 0o644), "bin/run.sh cannot be run: chmod +x"],
    ["a work_dir that is missing", () => rm(file("data"), { recursive: true }), "work_dir: data is no folder"],
  ])("%s", async (_, change, problem) => {
    await change();
    expect((await problems())[0]).toContain(problem);
  });

  test("nothing in it: it does not exist", async () => {
    const read = await readPlugin(file("missing"));
    const problem = { line: undefined, message: expect.stringContaining("ENOENT") as string };
    expect(read.ok ? [] : read.problems).toEqual([problem]);
  });
});

describe("what was accepted", () => {
  test("is read as it was written", async () => {
    const accepted = new Map([["demo", acceptanceOf(await plugin(), 1_800_000_000_000)]]);
    await writeFile(file("plugins.json"), acceptedText(accepted));
    expect(await readAccepted(file("plugins.json"))).toEqual(accepted);
    await rm(file("plugins.json"));
    expect(isAccepted(await plugin(), accepted)).toBe(true);
    await writeFile(file("data/new"), "");
    expect(isAccepted(await plugin(), accepted)).toBe(false);
  });

  test("is nothing where there is no file, and an error where the file is damaged", async () => {
    expect(await readAccepted(file("plugins.json"))).toEqual(new Map());
    await writeFile(file("plugins.json"), '{ "version": 1, "plugins": { "demo": {} } }');
    await expect(readAccepted(file("plugins.json"))).rejects.toThrow("no digest");
    await writeFile(file("plugins.json"), "{}");
    await expect(readAccepted(file("plugins.json"))).rejects.toThrow("reeve plugin accept");
  });
});
