import type { Http2Server, Http2Session } from "node:http2";
import type { Socket } from "node:net";
import { type ContextValues, createContextKey } from "@connectrpc/connect";
import type { NodeRequest } from "./adapter.ts";
import { type Bag, createBag } from "./bag.ts";
import { addressKey } from "./caller-address.ts";
import type { Limits } from "./limits.ts";

/** What the connections of one remote address share. */
export interface Neighborhood {
  /** See `addressKey`. */
  readonly address: string;
  /** Public RPCs under way on connections that are not known. */
  publicCalls: number;
}

/** One connection of a port. */
export interface CallerConnection {
  readonly neighborhood: Neighborhood;
  /** Something on it was authenticated: a request's token, or its certificate. */
  isKnown: boolean;
  /** Public RPCs under way on it. */
  publicCalls: number;
  /** Makes it a known one. Safe to repeat. */
  know(): void;
}

/** The connection that an RPC came on; undefined where there is none. */
export const connectionKey = createContextKey<CallerConnection | undefined>(undefined, {
  description: "reeve connection",
});

/** The address that an RPC came from, as `addressKey` says it; undefined where it came over no connection. */
export function callerAddress(values: ContextValues): string | undefined {
  return values.get(connectionKey)?.neighborhood.address;
}

/** The connections of a port, and which of them go where there are too many. */
export interface Connections {
  /** Counts a connection that was just accepted. Where there is no place for it, it is destroyed. */
  add(socket: Socket): void;
  /** Says that requests will show another socket than the accepted one: the one that decrypts it. */
  standIn(socket: Socket, accepted: Socket): void;
  /** Hands a connection to the HTTP/2 server, whose requests show its session. */
  toHttp2(h2: Http2Server, socket: Socket): void;
  /** The connection of a request; undefined where it is gone already. */
  of(request: NodeRequest): CallerConnection | undefined;
  /** The connection of a session, or of an HTTP/1.1 socket. */
  owner(owner: Http2Session | Socket): CallerConnection | undefined;
}

/** The part of all places that is kept for connections that are known. */
const RESERVE = 1 / 4;

interface Entry extends CallerConnection {
  readonly socket: Socket;
  readonly neighbors: Neighbors;
}

interface Neighbors extends Neighborhood {
  readonly strangers: Bag<Entry>;
  open: number;
}

/**
 * Counts connections. One is a stranger's until something on it is authenticated. Strangers have three quarters of
 * `maxConnections`, and one address `connectionsPerAddress` of them: where one more comes, any one of them goes. Who comes
 * to authenticate needs a place for milliseconds and most likely keeps it; who only holds places loses them. Not the oldest:
 * where a fleet dials at once, those are next in the queue for their handshake. Known connections are never closed here;
 * where they alone fill the port, a new connection is refused.
 */
export function createConnections(limits: Pick<Limits, "maxConnections" | "connectionsPerAddress">): Connections {
  const { maxConnections, connectionsPerAddress } = limits;
  const maxStrangers = Math.max(1, Math.ceil(maxConnections * (1 - RESERVE)));
  const strangers = createBag<Entry>();
  const neighborhoods = new Map<string, Neighbors>();
  const byOwner = new WeakMap<object, Entry>();
  let open = 0;

  const estrange = (entry: Entry): void => {
    strangers.remove(entry);
    entry.neighbors.strangers.remove(entry);
  };
  /** False where there is none to close. */
  const closeAny = (of: Bag<Entry>): boolean => {
    const unlucky = of.any();
    if (unlucky === undefined) return false;
    estrange(unlucky);
    unlucky.socket.destroy();
    return true;
  };
  const neighborsAt = (address: string): Neighbors => {
    let found = neighborhoods.get(address);
    if (found === undefined) {
      found = { address, publicCalls: 0, strangers: createBag<Entry>(), open: 0 };
      neighborhoods.set(address, found);
    }
    return found;
  };
  const count = (socket: Socket, neighbors: Neighbors): void => {
    const entry: Entry = {
      socket,
      neighbors,
      neighborhood: neighbors,
      isKnown: false,
      publicCalls: 0,
      know() {
        entry.isKnown = true;
        estrange(entry);
      },
    };
    open++;
    neighbors.open++;
    strangers.add(entry);
    neighbors.strangers.add(entry);
    byOwner.set(socket, entry);
    socket.once("close", () => {
      open--;
      estrange(entry);
      if (--neighbors.open === 0) neighborhoods.delete(neighbors.address);
    });
  };

  return {
    add(socket) {
      const neighbors = neighborsAt(addressKey(socket.remoteAddress));
      if (neighbors.strangers.size >= connectionsPerAddress) closeAny(neighbors.strangers);
      const isFull = strangers.size >= maxStrangers || open >= maxConnections;
      if (isFull && !closeAny(strangers)) {
        if (neighbors.open === 0) neighborhoods.delete(neighbors.address);
        socket.destroy();
        return;
      }
      count(socket, neighbors);
    },
    standIn(socket, accepted) {
      const entry = byOwner.get(accepted);
      if (entry !== undefined) byOwner.set(socket, entry);
    },
    toHttp2(h2, socket) {
      const entry = byOwner.get(socket);
      const keep = (session: Http2Session): void => {
        if (entry !== undefined) byOwner.set(session, entry);
      };
      h2.prependOnceListener("session", keep); // the session is made, and says so, within `emit`
      h2.emit("connection", socket);
      h2.off("session", keep);
    },
    of(request) {
      const owner = "stream" in request ? request.stream.session : request.socket;
      return owner === undefined ? undefined : byOwner.get(owner);
    },
    owner: (owner) => byOwner.get(owner),
  };
}
