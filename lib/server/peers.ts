import type { X509Certificate } from "node:crypto";
import type { Server as Http1Server } from "node:http";
import type { Http2Server, Http2Session } from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import { admitPeer, type Peer } from "../auth/peer.ts";
import { certificatesOf, isFromAuthority } from "../identity/chain.ts";
import type { TlsSource } from "../identity/tls-source.ts";
import type { Logger } from "../log/log.ts";

/** Whose connections are followed. */
export interface PeersOptions {
  readonly h1: Http1Server;
  readonly h2: Http2Server;
  readonly tls: TlsSource;
  readonly logger: Logger;
  /** Called with the session, or the socket of HTTP/1.1, of each connection whose certificate is sound. */
  onSound?(owner: Http2Session | Socket): void;
}

/** How often certificates are looked at for their end, in milliseconds. Clocks are set, so a timer for it would be wrong. */
const LOOK_MS = 1000;

/** A handshake that began under the authorities of before is over by then, in milliseconds. */
const LONGEST_HANDSHAKE_MS = 120_000;

interface Connected {
  peer: Peer;
  certificate: X509Certificate;
  end(): void;
}

/**
 * Reads who comes over TLS, and ends a connection with all that runs on it when its certificate is good no more: it has
 * expired, or its authority is not trusted any longer. The gate gives the next connection the reason. Connections without a
 * certificate, and those whose certificate had a problem from the beginning, are the gate's matter alone.
 */
export function followPeers({ h1, h2, tls, logger, onSound }: PeersOptions): void {
  const connected = new Set<Connected>();
  let trusted = tls.current().ca;
  let changed = Number.NEGATIVE_INFINITY;

  const admit = (socket: TLSSocket, owner: Http2Session | Socket, end: () => void): (() => void) => {
    const peer = admitPeer(socket, tls.current().ca);
    const certificate = socket.getPeerX509Certificate();
    if (peer === undefined || peer.problem !== undefined || certificate === undefined) return () => undefined;
    const one = { peer, certificate, end };
    connected.add(one);
    onSound?.(owner);
    if (performance.now() - changed < LONGEST_HANDSHAKE_MS) endStrangers([one]);
    return () => connected.delete(one);
  };
  h2.on("session", (session) => {
    // The session's own stand-in for the socket, which is what requests show.
    const forget = admit(session.socket as TLSSocket, session, () => session.destroy());
    session.once("close", forget);
  });
  h1.on("secureConnection", (socket: TLSSocket) => {
    if (socket.alpnProtocol === "h2") return;
    socket.once(
      "close",
      admit(socket, socket, () => socket.destroy()),
    );
  });

  const end = (one: Connected, why: string): void => {
    logger.info({ peer: one.peer.claimed, why }, "a connection ends with its certificate");
    connected.delete(one);
    one.end();
  };
  const endStrangers = (some: Iterable<Connected>): void => {
    const authorities = certificatesOf(trusted);
    for (const one of some) if (!isFromAuthority(one.certificate, authorities)) end(one, "foreign");
  };
  const looking = setInterval(() => {
    const now = Date.now();
    for (const one of connected) if (now > (one.peer.notAfterMs ?? Number.POSITIVE_INFINITY)) end(one, "expired");
  }, LOOK_MS);
  looking.unref();
  const stopListening = tls.onChange(() => {
    const { ca } = tls.current();
    if (ca === trusted) return;
    trusted = ca;
    changed = performance.now();
    endStrangers(connected);
  });
  h1.once("close", () => {
    clearInterval(looking);
    stopListening();
  });
}
