import { spawn } from "node:child_process";
import { once } from "node:events";
import { mkdtemp, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { expect, test } from "vitest";
import { startRestateServer } from "../../cli/stack/restate-server.ts";
import { createLogger } from "../../lib/log/log.ts";

const MODULE = new URL("../../cli/stack/restate-server.ts", import.meta.url).href;

/** A parent that starts a server in the folder given to it, and prints the server's process. */
const PARENT = `
const { startRestateServer } = await import(${JSON.stringify(MODULE)});
const logger = { debug() {}, warn() {}, error() {} };
const server = await startRestateServer({ folder: process.argv[1], logger });
console.log(server.pid());
`;

async function isServer(pid: number): Promise<boolean> {
  return (await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "")).includes("restate-server");
}

test("a server whose parent was killed is ended at the next start, which has its data", async () => {
  await using parts = new AsyncDisposableStack();
  const folder = await mkdtemp(join(tmpdir(), "reeve-orphan-"));
  parts.defer(() => rm(folder, { recursive: true, force: true }));
  const parent = spawn(process.execPath, ["--input-type=module", "-e", PARENT, "--", folder], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  parts.defer(() => void parent.kill("SIGKILL"));
  const [line] = await once(createInterface({ input: parent.stdout }), "line");
  const orphan = Number(line);
  parts.defer(async () => void ((await isServer(orphan)) && process.kill(orphan, "SIGKILL")));
  const gone = once(parent, "exit");
  parent.kill("SIGKILL");
  await gone;
  expect(await isServer(orphan)).toBe(true);
  const logger = createLogger({ service: "test", level: "silent" });
  const server = parts.adopt(await startRestateServer({ folder, logger }), (one) => one.close());
  expect(await isServer(orphan)).toBe(false);
  expect(await isServer(server.pid() ?? 0)).toBe(true);
});
