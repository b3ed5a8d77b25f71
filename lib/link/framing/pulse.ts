import { DEFAULT_HEARTBEAT_MS, SILENT_HEARTBEATS } from "./limits.ts";
import { onTick } from "./ticker.ts";

/** Looks this often in each interval between heartbeats. */
const TICKS = 8;

/** The fewest ticks of silence that say anything, where the other side's heart beats much faster than this one's. */
const MIN_SILENT_TICKS = 3;

/** What the other side may call its heartbeat, in milliseconds. */
const MIN_HEARTBEAT_MS = 8;
const MAX_HEARTBEAT_MS = 10 * 60_000;

/** Keeps a link alive, and knows whether the other side is. */
export interface Pulse {
  /** A sign of life is due. */
  readonly isDue: boolean;
  /** Something was sent. */
  sent(): void;
  /** Something framed has come, from a side that calls this its heartbeat; 0 where it does not say. */
  heard(heartbeatMs: number): void;
  stop(): void;
}

/** What happens when nothing happens. Times are milliseconds; undefined is never. */
export interface PulseOptions {
  heartbeatMs: number;
  /** From the start to the first sign of the other side, before it counts as gone. */
  answerMs: number | undefined;
  /** From the start to the first sign of the other side, before it counts as one without framing. */
  plainAfterMs: number | undefined;
  onDue(): void;
  onSilent(ms: number): void;
  onPlain(): void;
}

/** Starts at once. Counts ticks, so that a stall of this process is not taken for the other's silence. */
export function createPulse(options: PulseOptions): Pulse {
  const tickMs = Math.max(1, Math.round(options.heartbeatMs / TICKS));
  let theirMs = DEFAULT_HEARTBEAT_MS;
  let sinceSent = 0;
  let sinceHeard = 0;
  let hasHeard = false;
  const limitMs = (): number | undefined =>
    hasHeard ? theirMs * SILENT_HEARTBEATS : (options.answerMs ?? options.plainAfterMs);
  const stop = onTick(tickMs, () => {
    sinceSent++;
    sinceHeard++;
    const limit = limitMs();
    if (limit !== undefined && sinceHeard * tickMs >= limit && sinceHeard >= MIN_SILENT_TICKS) {
      if (!hasHeard && options.answerMs === undefined) options.onPlain();
      else options.onSilent(sinceHeard * tickMs);
    } else if (sinceSent >= TICKS - 1) options.onDue();
  });
  return {
    get isDue() {
      return sinceSent >= TICKS - 1;
    },
    sent() {
      sinceSent = 0;
    },
    heard(heartbeatMs) {
      hasHeard = true;
      sinceHeard = 0;
      if (heartbeatMs > 0) theirMs = Math.min(MAX_HEARTBEAT_MS, Math.max(MIN_HEARTBEAT_MS, heartbeatMs));
    },
    stop,
  };
}
