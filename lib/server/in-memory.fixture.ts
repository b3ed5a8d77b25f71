import { randomUUID } from "node:crypto";
import { type ConnectRouter, createRouterTransport, type Transport } from "@connectrpc/connect";
import type { Peer } from "../auth/peer.ts";
import type { Principal } from "../auth/principal.ts";
import { createLogger, type Logger } from "../log/log.ts";
import { type AccessLookup, accessFromOption } from "./access.ts";
import { defaultLimits, type Limits } from "./limits.ts";
import { createObserver } from "./observe.ts";
import { prepareRoutes } from "./rpc.ts";

/** How a transport inside one process is made. */
export interface InMemoryOptions {
  /** Who calls. Default: no principal, so only public RPCs can be called. */
  principal?: Principal;
  /** Whose certificate the caller shows. Default: none. */
  peer?: Peer;
  /** Default: silent. */
  logger?: Logger;
  /** Default: the RPC's own option. */
  access?: AccessLookup;
  /** Default: always true. */
  ready?: () => boolean;
  limits?: Partial<Limits>;
  newRequestId?: () => string;
}

/** Calls services of the same process without a socket, through the same gate, codec and interceptors as over one. */
export function inMemoryTransport(routes: (router: ConnectRouter) => void, options: InMemoryOptions = {}): Transport {
  const logger = options.logger ?? createLogger({ service: "in-memory", level: "silent" });
  const prepared = prepareRoutes(routes, {
    authenticate: () => options.principal,
    peer: options.peer,
    access: options.access ?? accessFromOption,
    ready: options.ready ?? (() => true),
    observer: createObserver(logger, undefined),
    newRequestId: options.newRequestId ?? randomUUID,
    limits: { ...defaultLimits, ...options.limits },
    shutdownSignal: new AbortController().signal,
  });
  return createRouterTransport(prepared.routes, { router: prepared.router });
}
