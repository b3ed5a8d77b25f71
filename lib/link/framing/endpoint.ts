import { durationMs } from "@bufbuild/protobuf/wkt";
import type { Pings } from "../../wire/pings.ts";
import { createHeartbeat } from "./heartbeat.ts";
import { type Arrived, createIntake } from "./intake.ts";
import {
  DEFAULT_ANSWER_MS,
  DEFAULT_HEARTBEAT_MS,
  DEFAULT_PLAIN_AFTER_MS,
  DEFAULT_WINDOW_BYTES,
  LARGE_BACKLOG_BYTES,
  WHOLE_BACKLOG_BYTES,
} from "./limits.ts";
import { malformed, silent } from "./link-faults.ts";
import { onAbort } from "./on-abort.ts";
import { createOutflow, type Mode } from "./outflow.ts";
import type { Shapes } from "./shape.ts";

/** One side of one stream. */
export interface Endpoint<Out, In> {
  /** Messages for the wire. Read once, by a transport. */
  frames(): AsyncGenerator<Out, void, void>;
  /** Messages for the reader. Read once. Ends with the other side's stream, after what came before the end. */
  messages(): AsyncGenerator<In, void, void>;
  /** Takes what comes off the wire, to its end. Never rejects. */
  readWire(wire: AsyncIterable<In>): Promise<void>;
  /** Sends what the source gives, to its end. Never rejects. */
  readSource(source: AsyncIterable<Out>): Promise<void>;
  /** Ends it at once, with an error; undefined where nothing is wrong. The first call counts. */
  end(error: unknown): void;
  /** Aborted at the end. */
  readonly ended: AbortSignal;
  /** What it ended with; undefined while it runs and where nothing was wrong. */
  readonly error: unknown;
}

/** How one side of a link behaves. Times are milliseconds. */
export interface FramedOptions {
  /** The link is checked this often, and the other side sees that this one is alive at least as often. Default 1000, at least 8. */
  heartbeatMs?: number;
  /** Those of the connection, in place of a frame at every heartbeat. Default: there are only frames. */
  pings?: Pings | undefined;
  /** Gets what has the other side send a frame at once, such as for who has to know that no proxy answers for it. */
  onOpen?(ask: () => void): void;
  /** Bytes of items that may be in flight to this side. Default 1 MiB. */
  windowBytes?: number;
  /** Aborted when this side drains: the other side is notified, and what runs goes on. */
  draining?: AbortSignal;
  /** The other side drains. Called once. */
  onDrain?(): void;
  /**
   * With pings: the connection has not answered for a while, and is not given up yet. Called once in each silence.
   *
   * @param isStill whether no answer has come since.
   */
  onSuspect?(isStill: () => boolean): void;
  /** For the side that dials: how long the first answer may take. Default 2000. */
  answerMs?: number;
  /** For the side that is dialed: how long until a silent other side counts as one without framing. Default 1000. */
  plainAfterMs?: number;
}

/** Which side this is, and what its end is. */
export interface Side {
  /** It opened the stream: it shows its framing first. */
  dials: boolean;
  /** It shows nothing but its framing until the other side has answered. Default false. */
  waits?: boolean;
  /** The stream is over for this side when its frames, its messages or the wire's are. */
  endsWith: "frames" | "messages" | "wire";
}

/**
 * Joins a reader and a source of messages to a wire, with numbers, windows, pieces and heartbeats where the other side
 * has them too, and as they are where it has not: the first message decides.
 */
export function createEndpoint<Out, In>(
  shapes: Shapes<Out, In>,
  { dials, waits = false, endsWith }: Side,
  options: FramedOptions,
): Endpoint<Out, In> {
  const { heartbeatMs = DEFAULT_HEARTBEAT_MS, windowBytes = DEFAULT_WINDOW_BYTES, draining } = options;
  const intake = createIntake(shapes.in, windowBytes);
  const ended = new AbortController();
  const ready: Arrived<In>[] = [];
  // Each lets one loop go on: frames, messages, readSource, readWire.
  const [sending, reading, roomy, handed] = [createGate(), createGate(), createGate(), createGate()];
  let mode: Mode = "unknown";
  let error: unknown;
  let wireEnded = false;
  let sourceEnded = false;
  /** Nothing can be acknowledged: the transport holds back what the reader does not take. */
  let isMute = false;
  let peerDrains = false;
  let sentDrain = false;
  let reportedBytes = 0;
  let asks = false;
  let isAsked = false;

  const end = (cause: unknown): void => {
    if (ended.signal.aborted) return;
    error = cause;
    heartbeat.stop();
    stopListening?.();
    ended.abort(cause);
    for (const gate of [sending, reading, roomy, handed]) gate.open();
  };
  const decide = (decided: Mode): void => {
    mode = decided;
    if (decided === "plain") {
      isMute = true;
      heartbeat.stop();
    }
    sending.open();
  };
  const heartbeat = createHeartbeat({
    heartbeatMs,
    pings: options.pings,
    dials,
    hasNews: () => intake.consumedBytes() !== reportedBytes,
    answerMs: dials ? (options.answerMs ?? DEFAULT_ANSWER_MS) : undefined,
    plainAfterMs: dials ? undefined : (options.plainAfterMs ?? DEFAULT_PLAIN_AFTER_MS),
    onDue: sending.open,
    onSuspect: options.onSuspect,
    onSilent: (ms) => end(silent(`the other side of the link has been silent for ${ms} ms`)),
    onPlain: () => decide("plain"),
  });
  const outflow = createOutflow(shapes.out, { windowBytes, frameMs: heartbeat.frameMs, waits });
  const stopListening = draining && onAbort(draining, sending.open);

  const isAckDue = (): boolean => intake.consumedBytes() - reportedBytes >= windowBytes / 4;
  const isFull = (): boolean =>
    outflow.queue.wholeBytes() >= WHOLE_BACKLOG_BYTES || outflow.queue.largeBytes() >= LARGE_BACKLOG_BYTES;

  const nextFrame = (): Out | undefined => {
    if (mode === "unknown" && !dials) return undefined;
    const consumedBytes = intake.consumedBytes();
    const drain = draining?.aborted ?? false;
    const due = heartbeat.isDue() || drain !== sentDrain || asks || isAsked || isAckDue();
    const frame = outflow.next(mode, { consumedBytes, drain, ask: asks, due });
    if (frame === undefined) return undefined;
    reportedBytes = consumedBytes;
    sentDrain = drain;
    asks = false;
    isAsked = false;
    heartbeat.sent();
    if (!isFull()) roomy.open();
    return frame;
  };
  const arrive = (message: In): void => {
    const framing = shapes.in.framing(message);
    if (mode === "unknown") decide(framing === undefined ? "plain" : "framed");
    let arrived: Arrived<In> | undefined = { message, charge: 0, assembled: 0 };
    if (mode === "framed") {
      if (framing === undefined) throw malformed("framing", "required", "a frame came without its framing");
      arrived = intake.take(message, framing);
      heartbeat.received(framing.heartbeat ? durationMs(framing.heartbeat) : 0);
      outflow.received(framing);
      isAsked ||= framing.ask;
      if (!outflow.queue.isEmpty() || isAsked || isAckDue()) sending.open();
      if (framing.drain && !peerDrains) {
        peerDrains = true;
        options.onDrain?.();
      }
    }
    if (arrived === undefined) return;
    ready.push(arrived);
    reading.open();
  };
  const hangUp = (): void => {
    if (intake.isUnfinished()) throw malformed("framing.pieces", "unfinished", "the stream ended within an item");
    wireEnded = true;
    // It cannot acknowledge any more, nor send a heartbeat; what is still sent to it has the transport's own limits.
    heartbeat.stop();
    outflow.unbounded();
    if (mode === "unknown") decide("plain");
    reading.open();
    sending.open();
  };

  options.onOpen?.(() => {
    asks = true;
    sending.open();
  });
  return {
    async *frames() {
      try {
        for (;;) {
          if (ended.signal.aborted) break;
          const frame = nextFrame();
          if (frame !== undefined) yield frame;
          else if (sourceEnded && outflow.queue.isEmpty()) return;
          else await sending.wait();
        }
        if (error !== undefined) throw error;
      } catch (cause: unknown) {
        end(cause);
        throw cause;
      } finally {
        // Nor are the other side's heartbeats required where there are none of this side.
        heartbeat.stop();
        isMute = true;
        intake.unbounded();
        if (endsWith === "frames") end(undefined);
      }
    },
    async *messages() {
      try {
        for (;;) {
          const arrived = ready.shift();
          if (arrived !== undefined) {
            yield arrived.message;
            intake.consumed(arrived);
            handed.open();
            if (mode === "framed" && isAckDue()) sending.open();
          } else if (wireEnded || ended.signal.aborted) break;
          else await reading.wait();
        }
        if (error !== undefined) throw error;
      } finally {
        if (endsWith === "messages") end(undefined);
      }
    },
    async readWire(wire) {
      try {
        for await (const message of wire) {
          if (ended.signal.aborted) return;
          arrive(message);
          while (isMute && ready.length > 0 && !ended.signal.aborted) await handed.wait();
        }
        hangUp();
      } catch (cause: unknown) {
        end(cause);
      }
      if (endsWith === "wire") end(undefined);
    },
    async readSource(source) {
      try {
        for await (const message of source) {
          if (ended.signal.aborted) return;
          for (const item of shapes.out.items(message)) outflow.queue.add(item);
          sending.open();
          while (isFull() && !ended.signal.aborted) await roomy.wait();
        }
        sourceEnded = true;
        sending.open();
      } catch (cause: unknown) {
        end(cause);
      }
    },
    end,
    ended: ended.signal,
    get error() {
      return error;
    },
  };
}

/** Lets one waiter go on when something has happened. What happens while there is no waiter is remembered, once. */
interface Gate {
  open(): void;
  wait(): Promise<void>;
}

function createGate(): Gate {
  let isOpen = false;
  let wake: (() => void) | undefined;
  return {
    open() {
      isOpen = true;
      wake?.();
      wake = undefined;
    },
    async wait() {
      if (!isOpen) {
        await new Promise<void>((resolve) => {
          wake = resolve;
        });
      }
      isOpen = false;
    },
  };
}
