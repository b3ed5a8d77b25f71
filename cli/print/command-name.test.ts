import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, expect, it } from "vitest";
import { repositoryRoot } from "../../scripts/repository-root.ts";
import { commandName } from "./command-name.ts";

let folder: string;
beforeEach(() => {
  folder = mkdtempSync(join(tmpdir(), "reeve-name-"));
});
afterEach(() => rmSync(folder, { recursive: true }));

const nameIn = (from: string, PATH = "/nowhere") =>
  commandName({ env: { PATH }, folder: from, script: "/opt/reeve/bin/reeve.js" });

function install(bin: string): string {
  mkdirSync(join(folder, bin), { recursive: true });
  writeFileSync(join(folder, bin, "reeve"), "", { mode: 0o755 });
  return join(folder, bin);
}

it("is its name where it is on the PATH of every terminal", () => {
  expect(nameIn("/", install("bin"))).toBe("reeve");
});

it("is npx in a checkout and where it is installed, also in a folder below", () => {
  expect(nameIn(join(repositoryRoot, "cli"))).toBe("npx reeve");
  const npmsOwn = install("node_modules/.bin");
  expect(nameIn(folder, npmsOwn)).toBe("npx reeve");
});

it("is its path elsewhere, and in another package, where npx would fetch one", () => {
  expect(nameIn("/")).toBe("/opt/reeve/bin/reeve.js");
  writeFileSync(join(folder, "package.json"), '{ "name": "other" }');
  mkdirSync(join(folder, "src"));
  expect(nameIn(join(folder, "src"))).toBe("/opt/reeve/bin/reeve.js");
});
