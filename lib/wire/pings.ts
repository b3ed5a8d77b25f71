import { constants, type Http2Session } from "node:http2";

/** Checks the connection under a stream, for a fraction of what a frame costs. */
export interface Pings {
  /** Asks the other end of the connection for an answer. Never throws. */
  ping(): void;
  /** How often the other end has proved to be alive: by its answers to pings, and by its own pings. */
  readonly signs: number;
  /** Ends the connection, because no answer comes on it: what else is open there ends as well, and the next call has a new one. */
  drop(): void;
}

const bySession = new WeakMap<Http2Session, Pings>();

/** Those of an HTTP/2 connection. All its streams share them. */
export function pingsOf(session: Http2Session): Pings {
  const known = bySession.get(session);
  if (known !== undefined) return known;
  let signs = 0;
  session.on("ping", () => signs++);
  // A connection that is dropped says so, perhaps when its owner has stopped listening.
  session.on("error", () => undefined);
  const pings: Pings = {
    ping() {
      if (session.destroyed) return;
      // An error is a connection that ended first, or one with too many pings unanswered.
      session.ping((error) => {
        if (error === null) signs++;
      });
    },
    get signs() {
      return signs;
    },
    drop: () => session.destroy(undefined, constants.NGHTTP2_CANCEL),
  };
  bySession.set(session, pings);
  return pings;
}
