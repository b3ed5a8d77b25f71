import { setTimeout as sleep } from "node:timers/promises";
import { Events, type NatsConnection } from "nats";
import { busNotReady, SILENT_LOGGER } from "./bus.ts";
import { dialNats, messageOf, type NatsOptions, NatsUnreachable } from "./nats-connection.ts";

/** A connection that is kept for good, and may not be up yet. */
export interface ManagedConnection<T> {
  isUp(): boolean;
  /** What was made of the connection when it was up first; undefined until then. */
  ready(): T | undefined;
  /** Why it was never up so far; undefined once it was. */
  waitsFor(): string | undefined;
  /**
   * Starts a request in the caller's own turn. Rejects NOT_READY while the connection is down, and as soon as it breaks:
   * the package itself would let it wait for its time limit.
   */
  request<R>(ask: (ready: T) => Promise<R>): Promise<R>;
  /** Closes it when what was sent has left. */
  close(): Promise<void>;
}

/** From one try to the next, while no server was ever reached, in milliseconds. */
const RETRY_MS = 500;

/**
 * Connects to NATS. Where no server is reachable it goes on trying for as long as it takes, and says so. A server that
 * answers and refuses rejects with NOT_READY, at the start; later it is logged, and tried again. Once up, the connection
 * is made anew whenever it breaks.
 *
 * @param prepare makes what is needed of the first connection; what it throws refuses the server, but for NatsUnreachable.
 */
export async function manageConnection<T>(
  options: NatsOptions,
  prepare: (nc: NatsConnection) => Promise<T>,
): Promise<ManagedConnection<T>> {
  const { logger = SILENT_LOGGER } = options;
  const closing = new AbortController();
  /** What rejects the requests in flight. */
  const inFlight = new Set<(error: Error) => void>();
  let held: { nc: NatsConnection; ready: T } | undefined;
  let isUp = false;
  let why: string | undefined;

  const goDown = (): void => {
    isUp = false;
    for (const reject of inFlight) reject(busNotReady("the connection to NATS broke"));
  };
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
    isUp = true;
    void follow(status);
    void nc.closed().then(goDown);
  };
  const follow = async (status: ReturnType<NatsConnection["status"]>): Promise<void> => {
    for await (const { type } of status) {
      if (type === Events.Reconnect) isUp = true;
      if (type !== Events.Disconnect) continue;
      logger.warn({}, "nats disconnected");
      goDown();
    }
  };
  const note = (error: unknown): void => {
    const text = messageOf(error);
    if (text === why) return;
    why = text;
    if (error instanceof NatsUnreachable) logger.warn({ reason: text }, "nats unreachable");
    else logger.error({ err: error }, "nats refuses the connection");
  };
  const keepTrying = async (): Promise<void> => {
    for (;;) {
      await sleep(RETRY_MS, undefined, { signal: closing.signal });
      try {
        await connect();
        logger.warn({}, "nats connected");
        return;
      } catch (error: unknown) {
        closing.signal.throwIfAborted();
        note(error);
      }
    }
  };
  const request = async <R>(ask: (ready: T) => Promise<R>): Promise<R> => {
    if (held === undefined || !isUp) throw busNotReady(why ?? "the connection to NATS is down");
    const { promise: broken, reject } = Promise.withResolvers<never>();
    inFlight.add(reject);
    try {
      return await Promise.race([ask(held.ready), broken]);
    } finally {
      inFlight.delete(reject);
    }
  };

  try {
    await connect();
  } catch (error: unknown) {
    if (!(error instanceof NatsUnreachable)) throw error;
    note(error);
    keepTrying().catch(() => undefined); // only `close` ends it
  }
  return {
    isUp: () => isUp,
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
      goDown();
    },
  };
}
