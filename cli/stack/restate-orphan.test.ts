import { type ChildProcess, spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync } from "node:fs";
import { mkdtemp, rm, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { createInterface } from "node:readline";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { endOrphan } from "./restate-orphan.ts";

let folder: string;
let pidFile: string;
let config: string;
const started: ChildProcess[] = [];
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-orphan-"));
  [pidFile, config] = [join(folder, "restate.pid"), join(folder, "restate.toml")];
});
afterEach(async () => {
  for (const child of started.splice(0)) child.kill("SIGKILL");
  await rm(folder, { recursive: true, force: true });
});

/** A process that was started with a configuration, as a server is. Resolves with the signal that ends it. */
async function start(configFile: string, more = ""): Promise<{ child: ChildProcess; end: Promise<string | null> }> {
  const script = `setInterval(() => {}, 1000); ${more}; console.log("ready")`;
  const child = spawn(process.execPath, ["-e", script, "--", "--config-file", configFile], {
    stdio: ["ignore", "pipe", "inherit"],
  });
  started.push(child);
  const end = once(child, "exit").then(([, signal]) => signal as string | null);
  if (child.stdout) await once(createInterface({ input: child.stdout }), "line");
  await writeFile(pidFile, String(child.pid));
  return { child, end };
}

describe("a server that was left behind", () => {
  it("is asked to end", async () => {
    const { end } = await start(config);
    await endOrphan(pidFile, config);
    expect(await end).toBe("SIGTERM");
    expect(existsSync(pidFile)).toBe(false);
  });

  it("is killed when it does not", async () => {
    const { end } = await start(config, 'process.on("SIGTERM", () => {})');
    await endOrphan(pidFile, config, 100);
    expect(await end).toBe("SIGKILL");
  });

  it("is no program that has its number by now", async () => {
    const { child, end } = await start(join(folder, "another.toml"));
    await endOrphan(pidFile, config);
    expect(existsSync(pidFile)).toBe(false);
    child.kill("SIGUSR2");
    expect(await end).toBe("SIGUSR2");
  });
});
