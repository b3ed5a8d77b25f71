import type { Pings } from "../../wire/pings.ts";
import { DEFAULT_HEARTBEAT_MS, HEARTBEATS_PER_FRAME, MAX_FRAME_PAUSE_MS, SILENT_HEARTBEATS } from "./limits.ts";
import { onTick } from "./ticker.ts";

/** Looks this often in each interval between heartbeats. */
const TICKS = 8;

/** The fewest ticks of silence that say anything, where the other side's heartbeat is much shorter than this one's. */
const MIN_SILENT_TICKS = 3;

/** So many ticks without a sign: a ping went out one heartbeat after the last, and is unanswered for half of one. */
const UNANSWERED_TICKS = TICKS * 1.5;

/** What the other side may call its heartbeat, in milliseconds. */
const MIN_HEARTBEAT_MS = 8;
const MAX_HEARTBEAT_MS = 10 * 60_000;

/** Keeps a link alive, and knows whether the other side is. */
export interface Heartbeat {
  /** A frame is due, even an empty one. */
  readonly isDue: boolean;
  /** Something was sent. */
  sent(): void;
  /** How often this side sends at least a frame: at every heartbeat, or more rarely where pings stand in for it. */
  readonly frameMs: number;
  /** Something framed has come, from a side that sends a frame at least this often; 0 where it does not say. */
  received(theirFrameMs: number): void;
  stop(): void;
}

/** What happens when nothing happens. Times are milliseconds; undefined is never. */
export interface HeartbeatOptions {
  heartbeatMs: number;
  /** Those of the connection; undefined where there are only frames. */
  pings: Pings | undefined;
  /** It pings first. The other side's pings prove the connection alive too, so that one of the two is enough. */
  dials: boolean;
  /** There is something to say that can wait for a heartbeat, but not for longer. */
  hasNews(): boolean;
  /** From the start to the first frame of the other side, before it counts as gone. */
  answerMs: number | undefined;
  /** From the start to the first frame of the other side, before it counts as one without framing. */
  plainAfterMs: number | undefined;
  onDue(): void;
  onSilent(ms: number): void;
  onPlain(): void;
}

/**
 * Starts at once. Counts ticks, so that a stall of this process is not taken for the other's silence. With pings it gives up
 * a connection that is silent for this side's heartbeats, and as well a side whose frames stay out.
 */
export function createHeartbeat(options: HeartbeatOptions): Heartbeat {
  const { heartbeatMs, pings, hasNews } = options;
  const tickMs = Math.max(1, Math.round(heartbeatMs / TICKS));
  const pauseMs = Math.min(HEARTBEATS_PER_FRAME * heartbeatMs, MAX_FRAME_PAUSE_MS);
  const frameMs = pings === undefined ? heartbeatMs : Math.max(heartbeatMs, pauseMs);
  const frameTicks = Math.floor((TICKS * frameMs) / heartbeatMs) - 1;
  const quietTicks = options.dials ? TICKS : TICKS * 1.5;
  let theirMs = DEFAULT_HEARTBEAT_MS;
  let sinceSent = 0;
  let sinceReceived = 0;
  let sinceSign = 0;
  let sincePing = 0;
  let signs = pings?.signs;
  let hasReceived = false;
  const limitMs = (): number | undefined =>
    hasReceived ? theirMs * SILENT_HEARTBEATS : (options.answerMs ?? options.plainAfterMs);
  const isOver = (ticks: number, limit: number | undefined): boolean =>
    limit !== undefined && ticks * tickMs >= limit && ticks >= MIN_SILENT_TICKS;
  /** True where the connection has been silent for too long. Pings it before that. */
  const isDead = (): boolean => {
    if (pings === undefined) return false;
    sinceSign++;
    sincePing++;
    if (pings.signs !== signs) sinceSign = 0;
    signs = pings.signs;
    if (hasReceived && isOver(sinceSign, heartbeatMs * SILENT_HEARTBEATS)) return true;
    if (sinceSign >= quietTicks && sincePing >= TICKS) {
      sincePing = 0;
      pings.ping();
    }
    return false;
  };
  /** A connection on which a ping is answered is kept: others may use it too. */
  const giveUp = (ticks: number): void => {
    options.onSilent(ticks * tickMs);
    if (sinceSign >= UNANSWERED_TICKS) pings?.drop();
  };
  const isDue = (): boolean => sinceSent >= frameTicks || (sinceSent >= TICKS - 1 && hasNews());
  const stop = onTick(tickMs, () => {
    sinceSent++;
    sinceReceived++;
    if (isOver(sinceReceived, limitMs())) {
      if (!hasReceived && options.answerMs === undefined) options.onPlain();
      else giveUp(sinceReceived);
    } else if (isDead()) giveUp(sinceSign);
    else if (isDue()) options.onDue();
  });
  return {
    frameMs,
    get isDue() {
      return isDue();
    },
    sent() {
      sinceSent = 0;
    },
    received(theirFrameMs) {
      hasReceived = true;
      sinceReceived = 0;
      sinceSign = 0;
      if (theirFrameMs > 0) theirMs = Math.min(MAX_HEARTBEAT_MS, Math.max(MIN_HEARTBEAT_MS, theirFrameMs));
    },
    stop,
  };
}
