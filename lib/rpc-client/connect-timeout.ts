import type { Socket } from "node:net";

/**
 * Gives up a connection that is not established within so many milliseconds. The network itself waits for minutes, and for ever
 * where the other end accepts the connection and sends nothing. Returns the socket.
 *
 * @param event what the socket emits when it is established: "connect", or "secureConnect" for TLS.
 */
export function connectWithin<S extends Socket>(socket: S, event: "connect" | "secureConnect", ms: number): S {
  const giveUp = (): void => {
    const error = new Error(`no answer from ${socket.remoteAddress ?? "the address"} within ${ms} ms`);
    // What waits for the connection receives it; where nothing waits any more, it must not end the process.
    socket.on("error", () => undefined);
    socket.destroy(Object.assign(error, { code: "ETIMEDOUT" }));
  };
  const timer = setTimeout(giveUp, ms);
  const stop = (): void => clearTimeout(timer);
  socket.once(event, stop);
  socket.once("close", stop);
  return socket;
}
