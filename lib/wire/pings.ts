import { constants, type Http2Session } from "node:http2";

/** Checks the connection under a stream, for a fraction of what a frame costs. */
export interface Pings {
  /** Asks the other end of the connection for an answer. Never throws. */
  ping(): void;
  /** The bytes that have come over the connection so far: as long as it grows, by an answer to a ping too, the other end is alive. */
  receivedBytes(): number;
  /** Ends the connection, because no answer comes on it: what else is open there ends as well, and the next call has a new one. */
  drop(): void;
}

/**
 * Those of an HTTP/2 connection. It has no listener for pings: node answers them without entering JavaScript then, and counts
 * the bytes all the same.
 *
 * @param current the connection, which may be another one from time to time.
 */
export function pingsOf(current: () => Http2Session | undefined): Pings {
  return {
    ping() {
      const session = current();
      // An error is a connection that ended first, or one with too many pings unanswered.
      if (session?.destroyed === false) session.ping(() => undefined);
    },
    receivedBytes() {
      const session = current();
      return session?.destroyed === false ? session.socket.bytesRead : 0;
    },
    drop() {
      const session = current();
      if (session === undefined || session.destroyed) return;
      // It reports that, perhaps when its owner has stopped listening.
      session.once("error", () => undefined);
      session.destroy(undefined, constants.NGHTTP2_CANCEL);
    },
  };
}
