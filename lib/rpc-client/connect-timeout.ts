import type { Socket } from "node:net";

/**
 * Gives a connection up that is not there within so many milliseconds. The network itself waits for minutes, and for ever
 * where somebody takes the connection and says nothing. Returns the socket.
 *
 * @param event what the socket emits when it is there: "connect", or "secureConnect" for TLS.
 */
export function connectWithin<S extends Socket>(socket: S, event: "connect" | "secureConnect", ms: number): S {
  const giveUp = (): void => {
    const error = new Error(`nobody answered at ${socket.remoteAddress ?? "the address"} within ${ms} ms`);
    // Whoever waits for the connection hears of it; where nobody does any more, it must not end the process.
    socket.on("error", () => undefined);
    socket.destroy(Object.assign(error, { code: "ETIMEDOUT" }));
  };
  const timer = setTimeout(giveUp, ms);
  const stop = (): void => clearTimeout(timer);
  socket.once(event, stop);
  socket.once("close", stop);
  return socket;
}
