import { onTick } from "../../../lib/link/framing/ticker.ts";

export interface LivenessSource {
  /** How many frames have come in. */
  frames(): number;
  /** Aborted when the stream is over. */
  gone: AbortSignal;
  heartbeatMs: number;
}

/** A stream is alive when frames come in in so many intervals. */
const INTERVALS = 3;

/** So many intervals are waited for that, since a device may send its heartbeat less often. */
const MAX_INTERVALS = 30;

/**
 * Resolves true when frames have come in in three more intervals of a heartbeat; false as soon as the stream is over, and
 * where none has come in for 30. Counts ticks, so that what waits for a busy process is read before it decides.
 */
export function isAlive({ frames, gone, heartbeatMs }: LivenessSource): Promise<boolean> {
  return new Promise((resolve) => {
    let alive = 0;
    let intervals = 0;
    let known = frames();
    const conclude = (isAlive: boolean): void => {
      stop();
      gone.removeEventListener("abort", leave);
      resolve(isAlive);
    };
    const leave = (): void => conclude(false);
    const stop = onTick(heartbeatMs, () => {
      intervals++;
      if (frames() > known) alive++;
      known = frames();
      if (alive >= INTERVALS) conclude(true);
      else if (intervals >= MAX_INTERVALS) conclude(false);
    });
    gone.addEventListener("abort", leave, { once: true });
    if (gone.aborted) leave();
  });
}
