import type { Server as Http1Server, ServerResponse } from "node:http";
import type { Http2Server, ServerHttp2Session } from "node:http2";
import type { Socket } from "node:net";

/** The connections of a port that speaks both. */
export interface Connections {
  readonly h1: Http1Server;
  readonly h2: Http2Server;
  readonly undecided: ReadonlySet<Socket>;
}

/** Ends a port in two steps. */
export interface Drain {
  /** No new connection, GOAWAY on each HTTP/2 connection, idle ones closed. Resolves when the last connection is gone. */
  begin(): Promise<void>;
  /** Cuts off whatever is left. */
  destroy(): void;
}

/** Keeps account of a port's connections from now on, so that they can be drained. */
export function prepareDrain({ h1, h2, undecided }: Connections): Drain {
  const sockets = new Set<Socket>();
  const sessions = new Set<ServerHttp2Session>();
  let isDraining = false;
  h1.on("connection", (socket: Socket) => {
    sockets.add(socket);
    socket.once("close", () => sockets.delete(socket));
  });
  h2.on("session", (session) => {
    sessions.add(session);
    session.once("close", () => sessions.delete(session));
    if (isDraining) session.close();
  });
  h1.on("request", (_request, response: ServerResponse) => {
    if (isDraining) response.setHeader("connection", "close");
    // A kept-alive connection whose last request was in flight when the drain began is idle only now.
    response.once("close", () => isDraining && setImmediate(() => h1.closeIdleConnections()));
  });
  return {
    begin() {
      isDraining = true;
      for (const session of sessions) session.close();
      for (const socket of undecided) socket.destroy();
      const closed = new Promise<void>((resolve) => h1.close(() => resolve()));
      h1.closeIdleConnections();
      return closed;
    },
    destroy() {
      // A session may be over on this side and its connection still wait for a peer that does not hang up.
      for (const session of sessions) session.destroy();
      for (const socket of sockets) socket.destroy();
    },
  };
}
