import type { Server as Http1Server } from "node:http";
import type { Http2Server } from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Connections } from "./connections.ts";
import { paced } from "./pace.ts";

/** What an HTTP/2 client with prior knowledge sends first (RFC 9113 §3.4). No HTTP/1 method is "PRI". */
const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

type Accept = (socket: Socket) => void;

/**
 * Lets one cleartext port speak HTTP/1.1 and HTTP/2 by prior knowledge. `h1` must be the server that listens: node runs
 * its header and request timeouts only for connections of a listening server.
 *
 * @param timeoutMs A connection whose protocol is not clear by then is closed.
 * @returns The connections whose protocol is not clear yet.
 */
export function serveBoth(
  h1: Http1Server,
  h2: Http2Server,
  connections: Connections,
  timeoutMs: number,
): ReadonlySet<Socket> {
  const undecided = new Set<Socket>();
  const acceptH1 = h1.listeners("connection") as Accept[];
  h1.removeAllListeners("connection");
  const toH1: Accept = (socket) => {
    for (const accept of acceptH1) accept.call(h1, socket);
    socket.resume(); // what was put back reaches the parser
  };
  const toH2: Accept = (socket) => {
    endWithPeer(socket);
    connections.toHttp2(h2, socket);
  };
  h1.on("connection", (socket: Socket) => {
    connections.add(socket);
    if (socket.destroyed) return;
    socket.setNoDelay(true);
    undecided.add(socket);
    sniff(socket, timeoutMs, (isH2) => {
      undecided.delete(socket);
      if (isH2 !== undefined) (isH2 ? toH2 : toH1)(socket);
    });
  });
  return undecided;
}

/**
 * Handshakes that begin in one turn of the event loop. Each takes a millisecond or two of it, and after an outage a
 * thousand devices dial at once: those that are back already must not fall silent behind the others.
 */
const HANDSHAKES_PER_TURN = 8;

/**
 * Lets one TLS port speak both, by what client and server agreed on in the handshake (ALPN); a client that names no
 * protocol speaks HTTP/1.1. `h1` must be the https server that listens.
 *
 * @returns The connections whose handshake is not done yet.
 */
export function serveBothSecurely(h1: Http1Server, h2: Http2Server, connections: Connections): ReadonlySet<Socket> {
  const undecided = new Set<Socket>();
  // A TLS socket does not show which connection it is on, but both have the same other end.
  const byRemote = new Map<string, Socket>();
  const acceptH1 = h1.listeners("secureConnection") as Accept[];
  h1.removeAllListeners("secureConnection");
  const handshakes = h1.listeners("connection") as Accept[];
  h1.removeAllListeners("connection");
  const shakeHands = paced<Socket>(
    HANDSHAKES_PER_TURN,
    (socket) => {
      for (const begin of handshakes) begin.call(h1, socket);
    },
    (socket) => socket.destroyed,
  );
  h1.on("connection", (socket: Socket) => {
    connections.add(socket);
    if (socket.destroyed) return;
    const remote = remoteOf(socket);
    undecided.add(socket);
    byRemote.set(remote, socket);
    socket.setNoDelay(true);
    socket.once("close", () => {
      undecided.delete(socket);
      if (byRemote.get(remote) === socket) byRemote.delete(remote);
    });
    shakeHands(socket);
  });
  h1.on("secureConnection", (socket: TLSSocket) => {
    const inner = byRemote.get(remoteOf(socket));
    if (inner !== undefined) {
      undecided.delete(inner);
      connections.standIn(socket, inner);
    }
    if (socket.alpnProtocol === "h2") {
      endWithPeer(socket);
      connections.toHttp2(h2, socket);
    } else for (const accept of acceptH1) accept.call(h1, socket);
  });
  return undecided;
}

/**
 * Closes an HTTP/2 connection when its peer has sent its last byte. Node leaves it half open, as HTTP/1.1 needs it, until a
 * ping is not answered; but a peer that sends nothing more cannot answer one.
 */
function endWithPeer(socket: Socket): void {
  socket.once("end", () => socket.destroy());
}

function remoteOf({ remoteAddress, remotePort }: Socket): string {
  return `${remoteAddress} ${remotePort}`;
}

/** Calls back once: with the answer, and what was read put back, or with undefined where the connection ended first. */
function sniff(socket: Socket, timeoutMs: number, decided: (isH2: boolean | undefined) => void): void {
  let seen: Buffer = Buffer.alloc(0);
  const finish = (isH2: boolean | undefined): void => {
    clearTimeout(timer);
    socket.off("readable", onReadable).off("error", onError).off("close", onClose);
    decided(isH2);
  };
  const onReadable = (): void => {
    for (let chunk: Buffer | null = socket.read(); chunk !== null; chunk = socket.read())
      seen = Buffer.concat([seen, chunk]);
    const isH2 = startsHttp2(seen);
    if (isH2 === undefined) return;
    socket.unshift(seen);
    finish(isH2);
  };
  const onError = (): void => void socket.destroy();
  const onClose = (): void => finish(undefined);
  const timer = setTimeout(onError, timeoutMs);
  socket.on("readable", onReadable).on("error", onError).on("close", onClose);
}

/** Undefined: it could still be either. */
export function startsHttp2(bytes: Buffer): boolean | undefined {
  const length = Math.min(bytes.length, PREFACE.length);
  const matches = bytes.subarray(0, length).equals(PREFACE.subarray(0, length));
  if (matches && length < PREFACE.length) return undefined;
  return matches;
}
