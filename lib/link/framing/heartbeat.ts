import { DEFAULT_HEARTBEAT_MS, SILENT_HEARTBEATS } from "./limits.ts";
import { onTick } from "./ticker.ts";

/** Looks this often in each interval between heartbeats. */
const TICKS = 8;

/** The fewest ticks of silence that say anything, where the other side's heartbeat is much shorter than this one's. */
const MIN_SILENT_TICKS = 3;

/** What the other side may call its heartbeat, in milliseconds. */
const MIN_HEARTBEAT_MS = 8;
const MAX_HEARTBEAT_MS = 10 * 60_000;

/** Keeps a link alive, and knows whether the other side is. */
export interface Heartbeat {
  /** A frame is due, even an empty one. */
  readonly isDue: boolean;
  /** Something was sent. */
  sent(): void;
  /** Something framed has come, from a side that calls this its heartbeat; 0 where it does not say. */
  received(heartbeatMs: number): void;
  stop(): void;
}

/** What happens when nothing happens. Times are milliseconds; undefined is never. */
export interface HeartbeatOptions {
  heartbeatMs: number;
  /** From the start to the first frame of the other side, before it counts as gone. */
  answerMs: number | undefined;
  /** From the start to the first frame of the other side, before it counts as one without framing. */
  plainAfterMs: number | undefined;
  onDue(): void;
  onSilent(ms: number): void;
  onPlain(): void;
}

/** Starts at once. Counts ticks, so that a stall of this process is not taken for the other's silence. */
export function createHeartbeat(options: HeartbeatOptions): Heartbeat {
  const tickMs = Math.max(1, Math.round(options.heartbeatMs / TICKS));
  let theirMs = DEFAULT_HEARTBEAT_MS;
  let sinceSent = 0;
  let sinceReceived = 0;
  let hasReceived = false;
  const limitMs = (): number | undefined =>
    hasReceived ? theirMs * SILENT_HEARTBEATS : (options.answerMs ?? options.plainAfterMs);
  const stop = onTick(tickMs, () => {
    sinceSent++;
    sinceReceived++;
    const limit = limitMs();
    if (limit !== undefined && sinceReceived * tickMs >= limit && sinceReceived >= MIN_SILENT_TICKS) {
      if (!hasReceived && options.answerMs === undefined) options.onPlain();
      else options.onSilent(sinceReceived * tickMs);
    } else if (sinceSent >= TICKS - 1) options.onDue();
  });
  return {
    get isDue() {
      return sinceSent >= TICKS - 1;
    },
    sent() {
      sinceSent = 0;
    },
    received(heartbeatMs) {
      hasReceived = true;
      sinceReceived = 0;
      if (heartbeatMs > 0) theirMs = Math.min(MAX_HEARTBEAT_MS, Math.max(MIN_HEARTBEAT_MS, heartbeatMs));
    },
    stop,
  };
}
