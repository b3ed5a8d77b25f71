import { createGate } from "./gate.ts";
import { type Arrived, createIntake } from "./intake.ts";
import { DEFAULT_HEARTBEAT_MS, DEFAULT_WINDOW_BYTES, LARGE_BACKLOG_BYTES, WHOLE_BACKLOG_BYTES } from "./limits.ts";
import { malformed, silent } from "./link-faults.ts";
import { onAbort } from "./on-abort.ts";
import { DEFAULT_ANSWER_MS, DEFAULT_PLAIN_AFTER_MS, type FramedOptions } from "./options.ts";
import { createOutflow, type Mode } from "./outflow.ts";
import { createPulse } from "./pulse.ts";
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
 * Joins a reader and a source of messages to a wire, with numbers, windows, pieces and signs of life where the other side
 * has them too, and as they are where it has not: the first message decides.
 */
export function createEndpoint<Out, In>(
  shapes: Shapes<Out, In>,
  { dials, waits = false, endsWith }: Side,
  options: FramedOptions,
): Endpoint<Out, In> {
  const { heartbeatMs = DEFAULT_HEARTBEAT_MS, windowBytes = DEFAULT_WINDOW_BYTES, draining } = options;
  const outflow = createOutflow(shapes.out, { windowBytes, heartbeatMs, waits });
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
  let drainHeard = false;
  let drainSaid = false;
  let toldConsumed = 0;

  const end = (cause: unknown): void => {
    if (ended.signal.aborted) return;
    error = cause;
    pulse.stop();
    stopListening?.();
    ended.abort(cause);
    for (const gate of [sending, reading, roomy, handed]) gate.open();
  };
  const decide = (decided: Mode): void => {
    mode = decided;
    if (decided === "plain") {
      isMute = true;
      pulse.stop();
    }
    sending.open();
  };
  const pulse = createPulse({
    heartbeatMs,
    answerMs: dials ? (options.answerMs ?? DEFAULT_ANSWER_MS) : undefined,
    plainAfterMs: dials ? undefined : (options.plainAfterMs ?? DEFAULT_PLAIN_AFTER_MS),
    onDue: sending.open,
    onSilent: (ms) => end(silent(`the other side of the link has been silent for ${ms} ms`)),
    onPlain: () => decide("plain"),
  });
  const stopListening = draining && onAbort(draining, sending.open);

  const isAckDue = (): boolean => intake.consumedBytes - toldConsumed >= windowBytes / 4;
  const isFull = (): boolean =>
    outflow.lanes.wholeBytes >= WHOLE_BACKLOG_BYTES || outflow.lanes.largeBytes >= LARGE_BACKLOG_BYTES;

  const nextFrame = (): Out | undefined => {
    if (mode === "unknown" && !dials) return undefined;
    const { consumedBytes } = intake;
    const drain = draining?.aborted ?? false;
    const due = pulse.isDue || drain !== drainSaid || isAckDue();
    const frame = outflow.next(mode, { consumedBytes, drain, due });
    if (frame === undefined) return undefined;
    toldConsumed = consumedBytes;
    drainSaid = drain;
    pulse.sent();
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
      pulse.heard(framing.heartbeatMs);
      outflow.heard(framing);
      if (!outflow.lanes.isEmpty || isAckDue()) sending.open();
      if (framing.drain && !drainHeard) {
        drainHeard = true;
        options.onDrain?.();
      }
    }
    if (arrived === undefined) return;
    ready.push(arrived);
    reading.open();
  };
  const hangUp = (): void => {
    if (intake.isUnfinished) throw malformed("framing.pieces", "unfinished", "the stream ended within an item");
    wireEnded = true;
    // It cannot acknowledge any more, nor show that it lives; what is still sent to it has the transport's own limits.
    pulse.stop();
    outflow.unbounded();
    if (mode === "unknown") decide("plain");
    reading.open();
    sending.open();
  };

  return {
    async *frames() {
      try {
        for (;;) {
          if (ended.signal.aborted) break;
          const frame = nextFrame();
          if (frame !== undefined) yield frame;
          else if (sourceEnded && outflow.lanes.isEmpty) return;
          else await sending.wait();
        }
        if (error !== undefined) throw error;
      } catch (cause: unknown) {
        end(cause);
        throw cause;
      } finally {
        // Nor are the other side's signs of life asked for where there are none of this side.
        pulse.stop();
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
          for (const item of shapes.out.items(message)) outflow.lanes.add(item);
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
