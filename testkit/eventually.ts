import { vi } from "vitest";

/** Longer than anything takes on a busy machine: a test waits for what is to come, and is no test of how soon. */
const PATIENCE_MS = 60_000;

/** Tries again until the check does not throw, and resolves with what it returned. Rejects with its last error. */
export function eventually<T>(check: () => T | Promise<T>): Promise<T> {
  return vi.waitFor(check, { timeout: PATIENCE_MS, interval: 20 });
}
