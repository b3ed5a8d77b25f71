import { mkdir, open, rm, stat } from "node:fs/promises";
import { dirname } from "node:path";
import { setTimeout as sleep } from "node:timers/promises";

/** How a lock is waited for. Times are milliseconds. */
export interface LockOptions {
  /** A lock file that is older was left by a process that died. Default 15000. */
  staleMs?: number;
  /** How long to wait for another holder. Default 6000. */
  waitMs?: number;
}

/** From one look at another holder's lock to the next. */
const LOOK_MS = 25;

/**
 * Runs something while no other process that uses the same lock file does. Rejects where another one holds it for all of
 * the wait. What runs must take much less time than a stale lock is old.
 */
export async function withLock<T>(path: string, options: LockOptions, run: () => Promise<T>): Promise<T> {
  const { staleMs = 15_000, waitMs = 6_000 } = options;
  await mkdir(dirname(path), { recursive: true, mode: 0o700 });
  const deadline = performance.now() + waitMs;
  while (!(await take(path))) {
    if (await breakStale(path, staleMs)) continue;
    if (performance.now() >= deadline) throw new Error(`${path} is held by another process`);
    await sleep(LOOK_MS);
  }
  try {
    return await run();
  } finally {
    await rm(path, { force: true });
  }
}

/** False where another process holds it. */
async function take(path: string): Promise<boolean> {
  try {
    await (await open(path, "wx", 0o600)).close();
    return true;
  } catch (error: unknown) {
    if (hasCode(error, "EEXIST")) return false;
    throw error;
  }
}

/** Removes a stale lock; true where it is worth trying again at once. Only one process does so at a time. */
async function breakStale(path: string, staleMs: number): Promise<boolean> {
  if (!(await isStale(path, staleMs))) return false;
  const guard = `${path}.break`;
  if (!(await take(guard))) {
    if (await isStale(guard, staleMs)) await rm(guard, { force: true });
    return false;
  }
  try {
    // Asked again: what was stale may have been broken by another, who holds a new one by now.
    if (await isStale(path, staleMs)) await rm(path, { force: true });
  } finally {
    await rm(guard, { force: true });
  }
  return true;
}

async function isStale(path: string, staleMs: number): Promise<boolean> {
  try {
    return Date.now() - (await stat(path)).mtimeMs >= staleMs;
  } catch (error: unknown) {
    if (hasCode(error, "ENOENT")) return false;
    throw error;
  }
}

function hasCode(error: unknown, code: string): boolean {
  return error instanceof Error && "code" in error && error.code === code;
}
