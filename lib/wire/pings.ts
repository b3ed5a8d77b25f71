import type { Http2Session } from "node:http2";

/** Checks the connection under a stream, for a fraction of what a frame costs. */
export interface Pings {
  /** Asks the other end of the connection for a sign of life. Never throws. */
  ping(): void;
  /** How many signs of life have come: answers to pings, and pings of the other end. */
  readonly signs: number;
}

const bySession = new WeakMap<Http2Session, Pings>();

/** Those of an HTTP/2 connection. All its streams share them. */
export function pingsOf(session: Http2Session): Pings {
  const known = bySession.get(session);
  if (known !== undefined) return known;
  let signs = 0;
  session.on("ping", () => signs++);
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
  };
  bySession.set(session, pings);
  return pings;
}
