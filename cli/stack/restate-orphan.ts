import { readFile, rm } from "node:fs/promises";
import { setTimeout as sleep } from "node:timers/promises";

/** As long as the server gives itself, and some more. */
const END_MS = 12_000;

/**
 * Ends the server that a parent left behind when it was killed: it holds the lock of its data. A process of that number that
 * was not started with this configuration is another program, and is left alone.
 *
 * @param endMs how long it may take to end before it is killed, in milliseconds.
 */
export async function endOrphan(pidFile: string, configFile: string, endMs: number = END_MS): Promise<void> {
  const pid = Number(await readFile(pidFile, "utf8").catch(() => ""));
  if (!Number.isInteger(pid) || pid <= 1) return;
  const signal = async (name: NodeJS.Signals): Promise<boolean> => {
    if (!(await isServer(pid, configFile))) return false;
    try {
      return process.kill(pid, name);
    } catch {
      return false;
    }
  };
  const until = performance.now() + endMs;
  for (let running = await signal("SIGTERM"); running; running = await isServer(pid, configFile)) {
    if (performance.now() > until) await signal("SIGKILL");
    await sleep(50);
  }
  await rm(pidFile, { force: true });
}

/** Whether the process was started with this configuration. Where that cannot be read, it was not. */
async function isServer(pid: number, configFile: string): Promise<boolean> {
  const line = await readFile(`/proc/${pid}/cmdline`, "utf8").catch(() => "");
  return line.split("\0").includes(configFile);
}
