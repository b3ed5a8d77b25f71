import type { NatsConnection } from "nats";
import type { NatsOptions } from "./nats-connection.ts";
import { holdLine } from "./nats-line.ts";
import type { ConnectionWatch } from "./nats-watch.ts";

/**
 * Messages between processes over core NATS: to those who listen at that moment and to nobody else, in order from each
 * sender while the connection lasts, and lost without a word when it breaks. Whoever is inside the bus can send and read
 * everything, so what matters has to be authenticated by those who use this.
 */
export interface Post extends ConnectionWatch {
  /** Sends at once. False where it cannot leave: the connection is down. */
  send(subject: string, data: Uint8Array): boolean;
  /** Resolves when the server has what was sent; rejects when the connection breaks before. */
  flush(): Promise<void>;
  /** Delivers every message on a subject from now on, until the returned function is called. Must not throw. */
  listen(subject: string, receive: (data: Uint8Array) => void): () => void;
  /** The largest message that the server carries, in bytes. */
  readonly maxBytes: number;
  /** Closes the connection when what was sent has left. */
  close(): Promise<void>;
}

interface Listener {
  subject: string;
  receive(data: Uint8Array): void;
  stop(): void;
}

/** What a server carries unless it says otherwise, in bytes. */
const DEFAULT_MAX_BYTES = 1024 * 1024;

/**
 * Connects to NATS for messages between processes. Rejects ERROR_REASON_NOT_READY where a server answers and refuses; where
 * none is there nothing can be sent until it is. Once up it reconnects for ever.
 */
export async function openNatsPost(options: NatsOptions): Promise<Post> {
  const listeners = new Set<Listener>();
  const listenTo = (nc: NatsConnection, listener: Listener): void => {
    const subscription = nc.subscribe(listener.subject, {
      // A copy: the package's is a window on what the socket has read.
      callback: (error, message) => error === null && listener.receive(new Uint8Array(message.data)),
    });
    listener.stop = () => subscription.unsubscribe();
  };
  const line = await holdLine(options, (nc) => {
    for (const listener of listeners) listenTo(nc, listener);
    return nc;
  });
  return {
    isUp: line.isUp,
    isClosed: line.isClosed,
    whenUp: line.whenUp,
    onDown: line.onDown,
    get maxBytes() {
      return line.ready()?.info?.max_payload ?? DEFAULT_MAX_BYTES;
    },
    send(subject, data) {
      const nc = line.ready();
      if (nc === undefined || !line.isUp() || nc.isClosed()) return false;
      nc.publish(subject, data);
      return true;
    },
    flush: () => line.request((nc) => nc.flush()),
    listen(subject, receive) {
      const listener: Listener = { subject, receive, stop: () => undefined };
      listeners.add(listener);
      const nc = line.ready();
      if (nc !== undefined) listenTo(nc, listener);
      return () => {
        listeners.delete(listener);
        listener.stop();
      };
    },
    close: line.close,
  };
}
