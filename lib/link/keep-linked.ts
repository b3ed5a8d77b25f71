import { type BatchQueue, createBatchQueue } from "../async/batch-queue.ts";
import { fullJitter } from "./backoff.ts";

/** What a link needs to know. */
export interface LinkOptions<Req, Res> {
  /** Opens the stream: batches out, batches in. Called again after every end. */
  open(outgoing: AsyncIterable<Req[]>, signal: AbortSignal): AsyncIterable<Res[]>;
  /** Gets every batch that comes in. Must not throw. */
  receive(batch: Res[]): void;
  /** The stream is open: send again what must not be lost. Called before any batch is received. */
  onUp?(): void;
  /** The stream ended, for whatever reason: what was sent may or may not have arrived. */
  onDown?(cause: unknown): void;
  /** About how large an item is on the wire, in bytes, where items can be large: see createBatchQueue. */
  sizeOf?: (item: Req) => number;
  /**
   * The longest wait before a new try, in milliseconds. Default 1000. The first try after an end waits up to 20. 0 is for
   * an `open` that itself waits until there is something to open.
   */
  maxBackoffMs?: number;
}

/** A stream that is opened again whenever it ends. */
export interface Link<Req> {
  /** Sends an item. Lost when the link is down: `onUp` is the place to send again. */
  send(item: Req): void;
  /** Tries again soon where the link is down, because a caller waits for it. */
  hurry(): void;
  /** Closes it for good. */
  close(): Promise<void>;
}

/** The least time between two tries, however many wait, in milliseconds. */
const HURRY_MS = 50;

/**
 * Holds one bidirectional stream open for ever. Every end, clean or not, means: open again with jitter, because the
 * code that a broken HTTP/2 stream ends with says nothing reliable about why.
 */
export function keepLinked<Req, Res>(options: LinkOptions<Req, Res>): Link<Req> {
  const closing = new AbortController();
  let queue: BatchQueue<Req> | undefined;
  let hurry: (() => void) | undefined;

  /** Until the next try. */
  const pause = (ms: number): Promise<void> => {
    const { promise, resolve } = Promise.withResolvers<void>();
    const began = performance.now();
    let timer = setTimeout(resolve, ms);
    hurry = () => {
      clearTimeout(timer);
      timer = setTimeout(resolve, Math.max(0, Math.min(ms, HURRY_MS) - (performance.now() - began)));
    };
    const stop = () => resolve();
    if (closing.signal.aborted) stop();
    closing.signal.addEventListener("abort", stop, { once: true });
    return promise.finally(() => {
      clearTimeout(timer);
      hurry = undefined;
      closing.signal.removeEventListener("abort", stop);
    });
  };

  const session = async (): Promise<void> => {
    const outgoing = createBatchQueue<Req>(options.sizeOf === undefined ? {} : { sizeOf: options.sizeOf });
    queue = outgoing;
    try {
      const incoming = options.open(outgoing.batches(), closing.signal);
      options.onUp?.();
      for await (const batch of incoming) options.receive(batch);
    } finally {
      queue = undefined;
      outgoing.end();
    }
  };

  const run = async (): Promise<void> => {
    for (let failures = 0; !closing.signal.aborted; ) {
      const opened = performance.now();
      let cause: unknown;
      try {
        await session();
      } catch (error: unknown) {
        cause = error;
      }
      options.onDown?.(cause);
      failures = performance.now() - opened > 2000 ? 0 : failures + 1;
      await pause(fullJitter(failures, options.maxBackoffMs ?? 1000));
    }
  };
  const running = run();

  return {
    send: (item) => queue?.push(item),
    hurry: () => hurry?.(),
    async close() {
      closing.abort();
      queue?.end();
      await running;
    },
  };
}
