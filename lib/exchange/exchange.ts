import { keepLinked } from "../link/keep-linked.ts";

/** How the frames of one protocol are made and read. */
export interface ExchangeOptions<Body, Request, Response> {
  /** Opens the stream: batches of requests out, batches of responses in. Called again after every end. */
  open(requests: AsyncIterable<Request[]>, signal: AbortSignal): AsyncIterable<Response[]>;
  /** A request's frame. Ids begin with 1. */
  frame(id: bigint, body: Body): Request;
  /** The frame that cancels a request. */
  cancel(id: bigint): Request;
  idOf(response: Response): bigint;
  /** Sent first on each stream, under the id 0: the peer responds to it at once, which shows that it is alive. */
  probe: Body;
  /** About how large a request is on the wire, in bytes. */
  sizeOf(request: Request): number;
}

/** How long a caller waits: gives the request up by `reject`, and returns what stops that. */
export type Patience = (reject: (error: unknown) => void) => () => void;

/** Requests and responses on one stream that is opened again whenever it ends. */
export interface Exchange<Body, Response> {
  /**
   * Resolves with the response, whatever it says. The request is sent again on every new stream until it was answered, so it
   * must be idempotent; one that is given up is canceled.
   */
  request(body: Body, patience: Patience): Promise<Response>;
  /** Whether the peer has responded on the stream that is open. */
  readonly up: boolean;
  /** For how long it has not, in milliseconds. */
  readonly downMs: number;
  /** Opens the stream soon where it is down, because a caller waits for it. */
  hurry(): void;
  /** Requests that wait are dropped, and neither resolve nor reject. */
  close(): Promise<void>;
}

/** Waits until the response comes. */
export const forEver: Patience = () => () => undefined;

/** Waits until the signal aborts. */
export function untilAborted(signal: AbortSignal): Patience {
  return (reject) => {
    const onAbort = () => reject(signal.reason);
    signal.addEventListener("abort", onAbort, { once: true });
    return () => signal.removeEventListener("abort", onAbort);
  };
}

interface Pending<Request, Response> {
  frame: Request;
  resolve(response: Response): void;
  /** Stops waiting for a time or a signal. */
  release(): void;
}

/** Opens the stream and keeps it open. */
export function createExchange<Body, Request, Response>(
  options: ExchangeOptions<Body, Request, Response>,
): Exchange<Body, Response> {
  const pending = new Map<bigint, Pending<Request, Response>>();
  let up = false;
  let downSince = performance.now();
  let lastId = 0n;

  const link = keepLinked<Request, Response>({
    open: options.open,
    sizeOf: options.sizeOf,
    onUp() {
      link.send(options.frame(0n, options.probe));
      for (const { frame } of pending.values()) link.send(frame);
    },
    onDown() {
      if (up) downSince = performance.now();
      up = false;
    },
    receive(responses) {
      up = true;
      for (const response of responses) {
        const id = options.idOf(response);
        const waiting = pending.get(id);
        pending.delete(id);
        waiting?.resolve(response);
      }
    },
  });

  return {
    get up() {
      return up;
    },
    get downMs() {
      return up ? 0 : performance.now() - downSince;
    },
    hurry: () => link.hurry(),
    request: (body, patience) =>
      new Promise((resolve, reject) => {
        const id = ++lastId;
        const frame = options.frame(id, body);
        const release = patience((error) => {
          if (!pending.delete(id)) return;
          link.send(options.cancel(id));
          reject(error);
        });
        pending.set(id, {
          frame,
          release,
          resolve(response) {
            release();
            resolve(response);
          },
        });
        link.send(frame);
      }),
    close() {
      for (const { release } of pending.values()) release();
      pending.clear();
      return link.close();
    },
  };
}
