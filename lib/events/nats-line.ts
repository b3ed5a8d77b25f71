import { setTimeout as sleep } from "node:timers/promises";
import { Events, type NatsConnection } from "nats";
import { busNotReady, SILENT_LOGGER } from "./bus.ts";
import { dialNats, messageOf, NatsAway, type NatsOptions } from "./nats-connection.ts";
import { type ConnectionWatch, createWatch } from "./nats-watch.ts";

/** A connection that is held for good, and may not be there yet. */
export interface NatsLine<T> extends ConnectionWatch {
  /** What was made of the connection when it was there first; undefined until then. */
  ready(): T | undefined;
  /** Why it was never there so far; undefined once it was. */
  waitsFor(): string | undefined;
  /**
   * Starts a request in the caller's own turn. Rejects NOT_READY while the connection is down, and as soon as it breaks:
   * the package itself would let it wait for its time limit.
   */
  request<R>(ask: (ready: T) => Promise<R>): Promise<R>;
  /** Closes it when what was sent has left. */
  close(): Promise<void>;
}

/** From one try to the next, while the server was never there, in milliseconds. */
const RETRY_MS = 500;

/**
 * Connects to NATS. Where no server is there it goes on trying for as long as it takes, and says so. A server that answers
 * and refuses rejects with NOT_READY, at the start; later it is logged, and tried again. Once there, the connection is made
 * anew whenever it breaks.
 *
 * @param prepare makes what is wanted of the first connection; what it throws refuses the server, but for NatsAway.
 */
export async function holdLine<T>(
  options: NatsOptions,
  prepare: (nc: NatsConnection) => T | Promise<T>,
): Promise<NatsLine<T>> {
  const { logger = SILENT_LOGGER } = options;
  const watch = createWatch();
  const closing = new AbortController();
  let held: { nc: NatsConnection; ready: T } | undefined;
  let why: string | undefined;

  const connect = async (): Promise<void> => {
    const nc = await dialNats(options);
    const status = nc.status(); // from here on, so that no break is missed
    try {
      const ready = await prepare(nc);
      closing.signal.throwIfAborted();
      held = { nc, ready };
    } catch (error: unknown) {
      await nc.close();
      throw error;
    }
    why = undefined;
    watch.goUp();
    void follow(status);
    void nc.closed().then(watch.end);
  };
  const follow = async (status: ReturnType<NatsConnection["status"]>): Promise<void> => {
    for await (const { type } of status) {
      if (type === Events.Reconnect) watch.goUp();
      if (type !== Events.Disconnect) continue;
      logger.warn({}, "the connection to NATS is down; reconnecting");
      watch.goDown();
    }
  };
  const note = (error: unknown): void => {
    const text = messageOf(error);
    if (text === why) return;
    why = text;
    if (error instanceof NatsAway) logger.warn({}, `${text}; going on without it until it is there`);
    else logger.error({ err: error }, `${text}; trying again`);
  };
  const keepTrying = async (): Promise<void> => {
    for (;;) {
      await sleep(RETRY_MS, undefined, { signal: closing.signal });
      try {
        await connect();
        logger.warn({}, "NATS is there now");
        return;
      } catch (error: unknown) {
        closing.signal.throwIfAborted();
        note(error);
      }
    }
  };
  const request = async <R>(ask: (ready: T) => Promise<R>): Promise<R> => {
    if (held === undefined || !watch.isUp()) throw busNotReady(why ?? "the connection to NATS is down");
    const down = Promise.withResolvers<never>();
    const stopListening = watch.onDown(() => down.reject(busNotReady("the connection to NATS broke")));
    try {
      return await Promise.race([ask(held.ready), down.promise]);
    } finally {
      stopListening();
    }
  };

  try {
    await connect();
  } catch (error: unknown) {
    if (!(error instanceof NatsAway)) throw error;
    note(error);
    keepTrying().catch(() => undefined); // only the end of it all ends this
  }
  return {
    isUp: watch.isUp,
    isClosed: watch.isClosed,
    whenUp: watch.whenUp,
    onDown: watch.onDown,
    ready: () => held?.ready,
    waitsFor: () => why,
    request,
    async close() {
      closing.abort();
      const nc = held?.nc;
      if (nc !== undefined) {
        await request(() => nc.flush()).catch(() => undefined);
        await nc.close();
      }
      watch.end();
    },
  };
}
