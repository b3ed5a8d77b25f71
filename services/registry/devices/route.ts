import { setTimeout as sleep } from "node:timers/promises";
import { fullJitter } from "../../../lib/link/backoff.ts";
import type { DeviceDialer } from "./device-link.ts";

/** One way to a device. */
export interface Way {
  /** Distinguishes ways by identity: a stream on another way is on the wrong one. */
  key: unknown;
  dialer: DeviceDialer;
}

/** The way to a device that moves: each stream goes along the best way at the time, and ends when that changes. */
export interface Route {
  /** Waits until there is a way, then goes along it. */
  readonly dialer: DeviceDialer;
  /** The way that the present stream goes along. */
  readonly way: Way | undefined;
  /** Says that another way may be the best now. */
  update(): void;
}

/** The longest wait before a way that does not hold is tried again, in milliseconds. */
const LONGEST_PAUSE_MS = 1000;

/** A stream that lasted so long was no failure, in milliseconds. */
const LASTING_MS = 2000;

/** @param choose the best way now; undefined where there is none. */
export function createRoute(choose: () => Way | undefined): Route {
  let way: Way | undefined;
  let failures = 0;
  /** Ends the present stream, or the wait for a way. */
  let stir: (() => void) | undefined;

  /** Resolves on a change, or after so many milliseconds. */
  const changed = async (signal: AbortSignal, ms?: number): Promise<void> => {
    const waited = new AbortController();
    const stop = () => waited.abort();
    stir = stop;
    signal.addEventListener("abort", stop, { once: true });
    if (signal.aborted) stop();
    // A day: only a change matters.
    await sleep(ms ?? 86_400_000, undefined, { signal: waited.signal }).catch(() => undefined);
    signal.removeEventListener("abort", stop);
    stir = undefined;
  };

  return {
    get way() {
      return way;
    },
    async *dialer(requests, signal) {
      if (failures > 0) {
        await changed(signal, fullJitter(failures, LONGEST_PAUSE_MS));
      }
      let chosen = choose();
      while (chosen === undefined && !signal.aborted) {
        await changed(signal);
        chosen = choose();
      }
      if (chosen === undefined || signal.aborted) return;
      way = chosen;
      const leaving = new AbortController();
      const leave = () => leaving.abort(signal.reason);
      signal.addEventListener("abort", leave, { once: true });
      stir = () => {
        if (choose()?.key !== chosen.key) leaving.abort(new Error("the device is reached another way now"));
      };
      const began = performance.now();
      failures++;
      try {
        yield* chosen.dialer(requests, leaving.signal);
      } finally {
        if (leaving.signal.aborted || performance.now() - began > LASTING_MS) failures = 0;
        signal.removeEventListener("abort", leave);
        way = undefined;
        stir = undefined;
      }
    },
    update: () => stir?.(),
  };
}
