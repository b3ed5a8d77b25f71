import { onTick } from "../../../lib/link/framing/ticker.ts";

/** What the life of a stream is told from. */
export interface LifeSigns {
  /** How many frames have come in. */
  heard(): number;
  /** Aborted when the stream is over. */
  left: AbortSignal;
  heartbeatMs: number;
}

/** In so many intervals something has to come in. */
const BEATS = 3;

/** So many intervals are waited for that, since a device's heart may beat more slowly. */
const MAX_INTERVALS = 30;

/**
 * Resolves true when frames have come in in three more intervals of a heartbeat; false as soon as the stream is over, and
 * where nothing has come in for long. Counts ticks, so that what waits for a busy process is read before it decides.
 */
export function showsLife({ heard, left, heartbeatMs }: LifeSigns): Promise<boolean> {
  return new Promise((resolve) => {
    let beats = 0;
    let intervals = 0;
    let known = heard();
    const settle = (lives: boolean): void => {
      stop();
      left.removeEventListener("abort", leave);
      resolve(lives);
    };
    const leave = (): void => settle(false);
    const stop = onTick(heartbeatMs, () => {
      intervals++;
      if (heard() > known) beats++;
      known = heard();
      if (beats >= BEATS) settle(true);
      else if (intervals >= MAX_INTERVALS) settle(false);
    });
    left.addEventListener("abort", leave, { once: true });
    if (left.aborted) leave();
  });
}
