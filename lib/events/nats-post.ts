import { SILENT_LOGGER } from "./bus.ts";
import { type ConnectionWatch, dialNats, type NatsOptions, watchConnection, whileUp } from "./nats-connection.ts";

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

/** Connects to NATS for messages between processes. Rejects ERROR_REASON_NOT_READY; once up it reconnects for ever. */
export async function openNatsPost(options: NatsOptions): Promise<Post> {
  const nc = await dialNats(options);
  const watch = watchConnection(nc, options.logger ?? SILENT_LOGGER);
  return {
    ...watch,
    maxBytes: nc.info?.max_payload ?? 1024 * 1024,
    send(subject, data) {
      if (!watch.isUp() || nc.isClosed()) return false;
      nc.publish(subject, data);
      return true;
    },
    flush: () => whileUp(watch, () => nc.flush()),
    listen(subject, receive) {
      const subscription = nc.subscribe(subject, {
        // A copy: the package's is a window on what the socket has read.
        callback: (error, message) => error === null && receive(new Uint8Array(message.data)),
      });
      return () => subscription.unsubscribe();
    },
    async close() {
      await whileUp(watch, () => nc.flush()).catch(() => undefined);
      await nc.close();
    },
  };
}
