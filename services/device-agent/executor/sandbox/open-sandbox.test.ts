import { existsSync } from "node:fs";
import { chmod, mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { createSpawnerProcess } from "../spawner-process.ts";
import { openSandbox } from "./open-sandbox.ts";

const BWRAP = "/usr/bin/bwrap";

const spawner = createSpawnerProcess();
let folder: string;
beforeAll(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-no-sandbox-"));
});
afterAll(async () => {
  spawner[Symbol.dispose]();
  await rm(folder, { recursive: true });
});

/** What is said of a bwrap that is this script. */
async function shortfallOf(script: string): Promise<string> {
  const bwrap = join(folder, "bwrap");
  await writeFile(bwrap, `#!/bin/sh\n${script}\n`);
  await chmod(bwrap, 0o755);
  using sandbox = await openSandbox({ spawner, bwrap, readRoots: [], writeRoots: [], hidden: [folder] });
  expect(sandbox.isolation).toBe("none");
  return sandbox.shortfall;
}

describe.runIf(process.platform === "linux")("a machine without a sandbox", () => {
  test("says what to install", async () => {
    using sandbox = await openSandbox({ spawner, bwrap: undefined, readRoots: [], writeRoots: [], hidden: [] });
    expect(sandbox.isolation).toBe("none");
    expect(sandbox.shortfall).toMatch(/bubblewrap is not installed .*apt-get install bubblewrap/);
  });

  test("says why bubblewrap does not work, in its own words", async () => {
    expect(await shortfallOf("echo 'bwrap: No permissions to create new namespace' >&2; exit 1")).toMatch(
      /does not work here: .*No permissions to create new namespace/,
    );
  });

  test("is found out where bubblewrap runs programs, but does not keep them apart", async () => {
    const shortfall = await shortfallOf("exec /bin/sh -s");
    for (const leak of [/sees what is in .*reeve-no-sandbox/, /processes/, /filter is not on/]) {
      expect(shortfall).toMatch(leak);
    }
    expect(existsSync("/usr/reeve-canary")).toBe(false);
  });
});

test.runIf(existsSync(BWRAP))("one that is closed starts nothing more", async () => {
  const sandbox = await openSandbox({ spawner, bwrap: BWRAP, readRoots: [], writeRoots: [], hidden: [folder] });
  expect(sandbox.isolation).toBe("read_only");
  const run = sandbox.run({
    spec: { argv: ["true"], cwd: "/", timeoutMs: 10_000, signal: new AbortController().signal },
    isolation: "read_only",
    program: "/bin/true",
    env: {},
    marker: "closed-meanwhile",
    graceMs: 0,
  });
  sandbox[Symbol.dispose]();
  await expect(run).rejects.toThrow("the sandbox is closed");
});
