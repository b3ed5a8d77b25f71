import type { Pings } from "../../wire/pings.ts";
import { DEFAULT_HEARTBEAT_MS, HEARTBEATS_PER_FRAME, MAX_FRAME_PAUSE_MS, SILENT_HEARTBEATS } from "./limits.ts";
import { onTick } from "./ticker.ts";

/** So many in each interval between heartbeats. */
const TICKS = 4;

/** The fewest ticks of silence that say anything, where the other side's heartbeat is much shorter than this one's. */
const MIN_SILENT_TICKS = 3;

/** How often there is a look at everything, in ticks, where nothing is due sooner; at a connection that is quiet in each. */
const LOOK_TICKS = TICKS / 2;

/**
 * A connection on which nothing has come for so many ticks is pinged: a little more often than every two heartbeats, since an answer is seen
 * a tick later. The side that was dialed pings only where that stays out.
 */
const QUIET_TICKS = TICKS * 1.5;
const QUIET_TICKS_DIALED = TICKS * 2.25;

/** So many ticks without a byte end the link. Before the other side's first answer it is twice as many: it may be busy with many dials. */
const DEAD_TICKS = TICKS * 2.75;
const DEAD_TICKS_UNANSWERED = 2 * DEAD_TICKS;

/** So many ticks without a byte: a ping is unanswered for some of them. */
const UNANSWERED_TICKS = TICKS * 1.75;

/**
 * After so many the connection is suspect: it is worth trying another one, and not yet worth giving up this one. Also before the
 * first answer: one who is only busy answers a ping on this connection as soon as the handshake of another.
 */
const SUSPECT_TICKS = TICKS * 2.25;

/** What the other side may call its heartbeat, in milliseconds. */
const MIN_HEARTBEAT_MS = 8;
const MAX_HEARTBEAT_MS = 10 * 60_000;

/** Keeps a link alive, and knows whether the other side is. */
export interface Heartbeat {
  /** A frame is due, even an empty one. */
  isDue(): boolean;
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
  /** With pings: no answer has come for a while. Called once in each silence. @param isStill whether none has come since. */
  onSuspect?: ((isStill: () => boolean) => void) | undefined;
  onSilent(ms: number): void;
  onPlain(): void;
}

/**
 * Starts at once. Counts ticks, so that a stall of this process is not taken for the other's silence. With pings it gives up
 * a connection that is silent for three of this side's heartbeats, and as well a side whose frames stay out. Most ticks of an
 * idle link are no more than a comparison.
 */
export function createHeartbeat(options: HeartbeatOptions): Heartbeat {
  const { heartbeatMs, pings, hasNews } = options;
  const tickMs = Math.max(1, Math.round(heartbeatMs / TICKS));
  const pauseMs = Math.min(HEARTBEATS_PER_FRAME * heartbeatMs, MAX_FRAME_PAUSE_MS);
  const frameMs = pings === undefined ? heartbeatMs : Math.max(heartbeatMs, pauseMs);
  const frameTicks = Math.floor((TICKS * frameMs) / heartbeatMs) - 1;
  const quietTicks = options.dials ? QUIET_TICKS : QUIET_TICKS_DIALED;
  let theirMs = DEFAULT_HEARTBEAT_MS;
  // In ticks since the start.
  let now = 0;
  let nextLook = 0;
  let sentAt = 0;
  let receivedAt = 0;
  let aliveAt = 0;
  let pingedAt = 0;
  let receivedBytes = pings?.receivedBytes();
  let hasReceived = false;
  let wasSuspect = false;

  const limitMs = (): number | undefined =>
    hasReceived ? theirMs * SILENT_HEARTBEATS : (options.answerMs ?? options.plainAfterMs);
  const limitTicks = (): number => Math.max(MIN_SILENT_TICKS, Math.ceil((limitMs() ?? Infinity) / tickMs));
  const countBytes = (): void => {
    const known = receivedBytes;
    receivedBytes = pings?.receivedBytes();
    if (receivedBytes !== known) aliveAt = now;
  };
  const isDead = (): boolean =>
    pings !== undefined && now - aliveAt >= (hasReceived ? DEAD_TICKS : DEAD_TICKS_UNANSWERED);
  const isSuspect = (): boolean => now - aliveAt >= SUSPECT_TICKS;
  const isStillSuspect = (): boolean => {
    countBytes();
    return isSuspect();
  };
  const checkQuiet = (): void => {
    if (pings === undefined || now - aliveAt < quietTicks) {
      wasSuspect = false;
      return;
    }
    if (now - pingedAt >= TICKS) {
      pingedAt = now;
      pings.ping();
    }
    if (!wasSuspect && isSuspect()) {
      wasSuspect = true;
      options.onSuspect?.(isStillSuspect);
    }
  };
  /** A connection on which a ping is answered is kept: others may use it too. */
  const giveUp = (since: number): void => {
    options.onSilent((now - since) * tickMs);
    if (now - aliveAt >= UNANSWERED_TICKS) pings?.drop();
  };
  const isDue = (): boolean => now - sentAt >= frameTicks || (now - sentAt >= TICKS - 1 && hasNews());
  const look = (): void => {
    countBytes();
    const newsAt = sentAt + TICKS - 1;
    nextLook = Math.min(
      now + (now - aliveAt < QUIET_TICKS ? LOOK_TICKS : 1),
      receivedAt + limitTicks(),
      sentAt + frameTicks,
      newsAt > now ? newsAt : Infinity,
    );
    if (now - receivedAt >= limitTicks()) {
      if (!hasReceived && options.answerMs === undefined) options.onPlain();
      else giveUp(receivedAt);
    } else if (isDead()) giveUp(aliveAt);
    else {
      checkQuiet();
      if (isDue()) options.onDue();
    }
  };
  const stop = onTick(tickMs, () => {
    if (++now >= nextLook) look();
  });
  return {
    frameMs,
    isDue,
    sent() {
      sentAt = now;
    },
    received(theirFrameMs) {
      hasReceived = true;
      receivedAt = now;
      aliveAt = now;
      if (theirFrameMs > 0) {
        theirMs = Math.min(MAX_HEARTBEAT_MS, Math.max(MIN_HEARTBEAT_MS, theirFrameMs));
        nextLook = now;
      }
    },
    stop,
  };
}
