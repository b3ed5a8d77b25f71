import type { DeviceRow } from "./device-store.ts";

/** What sweeping rests on. */
export interface SweepOptions {
  rows(): Iterable<DeviceRow>;
  /** Whether the row says that this replica holds the device's stream, which it does not. */
  isWrong(row: DeviceRow): boolean;
  release(row: DeviceRow): void;
}

/** How often to look, in milliseconds. */
const SWEEP_MS = 5000;

/** Corrects rows that stay wrong from one look to the next: their device left before it was let in. Returns how to stop. */
export function sweepRows({ rows, isWrong, release }: SweepOptions): () => void {
  let doubtful = new Set<DeviceRow>();
  const sweep = (): void => {
    const before = doubtful;
    doubtful = new Set();
    for (const row of rows()) {
      if (!isWrong(row)) continue;
      if (before.has(row)) release(row);
      else doubtful.add(row);
    }
  };
  const timer = setInterval(sweep, SWEEP_MS);
  return () => clearInterval(timer);
}
