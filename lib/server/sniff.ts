import type { Server as Http1Server } from "node:http";
import type { Http2Server } from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { Connections } from "./connections.ts";
import { readFirstBytes } from "./first-bytes.ts";

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
    readFirstBytes(socket, { timeoutMs, find: startsHttp2, closesHalfOpen: false }, (isH2) => {
      undecided.delete(socket);
      if (isH2 !== undefined) (isH2 ? toH2 : toH1)(socket);
    });
  });
  return undecided;
}

/**
 * Lets one TLS port speak both, by what client and server agreed on in the handshake (ALPN); a client that names no
 * protocol speaks HTTP/1.1. `h1` must be the https server that listens.
 *
 * @param timeoutMs A connection that says nothing for so long is closed.
 * @returns The connections whose handshake is not done yet.
 */
export function serveBothSecurely(
  h1: Http1Server,
  h2: Http2Server,
  connections: Connections,
  timeoutMs: number,
): ReadonlySet<Socket> {
  const undecided = new Set<Socket>();
  // A TLS socket does not show which connection it is on, but both have the same other end.
  const byRemote = new Map<string, Socket>();
  const acceptH1 = h1.listeners("secureConnection") as Accept[];
  h1.removeAllListeners("secureConnection");
  const handshakes = h1.listeners("connection") as Accept[];
  h1.removeAllListeners("connection");
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
    // A handshake takes a millisecond or two, and after an outage a thousand devices dial at once, and dial anew while they wait.
    readFirstBytes(socket, { timeoutMs, find: isAny, closesHalfOpen: true }, (isOpen) => {
      if (isOpen === true) for (const begin of handshakes) begin.call(h1, socket);
    });
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

/** Undefined: it could still be either. */
export function startsHttp2(bytes: Buffer): boolean | undefined {
  const length = Math.min(bytes.length, PREFACE.length);
  const matches = bytes.subarray(0, length).equals(PREFACE.subarray(0, length));
  if (matches && length < PREFACE.length) return undefined;
  return matches;
}

function isAny(bytes: Buffer): true | undefined {
  return bytes.length > 0 ? true : undefined;
}
