import type { IncomingMessage, ServerResponse } from "node:http";
import type { Http2ServerRequest, Http2ServerResponse } from "node:http2";
import type { Socket } from "node:net";
import type { TLSSocket } from "node:tls";
import type { DescMethod } from "@bufbuild/protobuf";
import { createContextValues } from "@connectrpc/connect";
import type { UniversalHandler } from "@connectrpc/connect/protocol";
import { universalRequestFromNodeRequest, universalResponseToNodeResponse } from "@connectrpc/connect-node";
import { type Peer, peerOfSocket } from "../auth/peer.ts";
import { pingsOf } from "../wire/pings.ts";
import { createBodyDeadline, limitBody } from "./body-limits.ts";
import { boundTimeouts } from "./bound-timeouts.ts";
import { followCaller, keepBody, peerKey } from "./call.ts";
import { absorbErrors } from "./connection-errors.ts";
import { type Connections, connectionKey } from "./connections.ts";
import { localKey, pingsKey } from "./context.ts";
import type { DirectRpc } from "./direct.ts";

/** A request of either HTTP version. */
export type NodeRequest = IncomingMessage | Http2ServerRequest;
/** A response of either HTTP version. */
export type NodeResponse = ServerResponse | Http2ServerResponse;
/** A listener that both of node's HTTP servers take. */
export type NodeHandler = (request: NodeRequest, response: NodeResponse) => void;
/** Serves requests that are no RPCs. What it throws, or rejects with, ends the response. */
export type PlainHandler = (request: NodeRequest, response: NodeResponse) => Promise<void> | undefined;

export interface AdapterOptions {
  handlers: readonly UniversalHandler[];
  /** Those that need not go through connect's handler. */
  direct?: ReadonlyMap<DescMethod, DirectRpc>;
  /** Gets each request whose path is no RPC. */
  fallback: PlainHandler;
  /** True where only programs of the machine's owner can connect; see `localKey`. Default false. */
  local?: boolean;
  /** Receives the cause where an answer could not be written; most often the caller is gone. */
  onLost: (path: string, cause: unknown) => void;
  connections: Connections;
  /** Whether anyone may call it: then its request may have `publicMaxBytes` in all. */
  isPublic: (method: DescMethod) => boolean;
  publicMaxBytes: number;
  /** How long a request's body over HTTP/2 may take, in milliseconds. */
  bodyTimeoutMs: number;
}

/**
 * Connects RPC handlers to node. In place of connect-node's own adapter, because that writes to the console when a caller
 * hangs up, and because the body of a JSON request is kept here to name the field that does not parse.
 */
export function createAdapter(options: AdapterOptions): NodeHandler {
  const { handlers, fallback, onLost } = options;
  const byPath = new Map(handlers.map((handler) => [handler.requestPath, servedRpc(handler, options)]));
  const bodyDeadline = createBodyDeadline(options.bodyTimeoutMs);
  return (request, response) => {
    absorbErrors(request);
    absorbErrors(response);
    const path = pathOf(request.url);
    const rpc = byPath.get(path);
    if ("stream" in request && rpc?.maySendForever !== true) bodyDeadline.watch(request);
    const lose = (cause: unknown): void => {
      onLost(path, cause);
      response.destroy();
    };
    // Whatever fails for one caller ends that caller's response, never the process.
    if (rpc !== undefined) return void serve(rpc, request, response).catch(lose);
    try {
      fallback(request, response)?.catch(lose);
    } catch (cause: unknown) {
      lose(cause);
    }
  };
}

interface ServedRpc {
  handler: UniversalHandler;
  direct: DirectRpc | undefined;
  connections: Connections;
  /** It comes by a socket of the machine's owner. */
  local: boolean;
  /** Bytes of all of the request; undefined where the limit of each message is enough. */
  maxBytes: number | undefined;
  /** The request is a stream of a caller that has to authenticate. */
  maySendForever: boolean;
}

function servedRpc(handler: UniversalHandler, options: AdapterOptions): ServedRpc {
  const { connections, isPublic, publicMaxBytes, local = false } = options;
  const { methodKind } = handler.method;
  const isOpen = isPublic(handler.method);
  const streams = methodKind === "client_streaming" || methodKind === "bidi_streaming";
  const maxBytes = isOpen ? publicMaxBytes : undefined;
  // Connect's handler reads what anyone may send, a piece at a time and no more than is allowed.
  const direct = isOpen ? undefined : options.direct?.get(handler.method);
  return { handler, direct, connections, local, maxBytes, maySendForever: streams && !isOpen };
}

async function serve(rpc: ServedRpc, request: NodeRequest, response: NodeResponse): Promise<void> {
  const { handler, connections, local, maxBytes } = rpc;
  const values = createContextValues().set(peerKey, peerOfRequest(request)).set(connectionKey, connections.of(request));
  if (local) values.set(localKey, true);
  if (rpc.direct?.takes(request) === true) return rpc.direct.serve(request, response, values);
  const session = rpc.maySendForever && "stream" in request ? request.stream.session : undefined;
  if (session !== undefined)
    values.set(
      pingsKey,
      pingsOf(() => session),
    );
  boundTimeouts(request.headers);
  const universal = universalRequestFromNodeRequest(request, response, undefined, values);
  followCaller(values, universal.signal);
  if (request.httpVersionMajor === 1 || maxBytes !== undefined) universal.body = bodyOf(request, response);
  if (maxBytes !== undefined) {
    const declared = request.headers["content-length"];
    // What is still to come is read and forgotten: kept, it would fill the connection's window.
    const onTooLarge = (): void => void request.resume();
    universal.body = limitBody(universal.body as AsyncIterable<Uint8Array>, { maxBytes, declared, onTooLarge });
  }
  if (isUnaryJson(request)) {
    const pieces: Uint8Array[] = [];
    keepBody(values, pieces);
    universal.body = keeping(universal.body as AsyncIterable<Uint8Array>, pieces);
  }
  await universalResponseToNodeResponse(await handler(universal), response);
}

/**
 * The pieces of a body. One that is refused half-way is still read to its end, and forgotten, or the next request on an
 * HTTP/1.1 connection would hang.
 */
function bodyOf(request: NodeRequest, response: NodeResponse): AsyncIterable<Uint8Array> {
  on(response, "finish", () => {
    if (!request.complete) request.resume();
  });
  return request.iterator({ destroyOnReturn: false }) as AsyncIterable<Uint8Array>;
}

/** Calls back when the answer is out or the caller is gone. */
export function onClose(response: NodeResponse, listener: () => void): void {
  on(response, "close", listener);
}

function on(emitter: NodeJS.EventEmitter, event: string, listener: () => void): void {
  emitter.once(event, listener);
}

/** Who is at the other end of a request's connection; undefined where it is cleartext or no certificate was shown. */
export function peerOfRequest(request: NodeRequest): Peer | undefined {
  const socket = "stream" in request ? request.stream.session?.socket : request.socket;
  return socket !== undefined && isSecure(socket) ? peerOfSocket(socket) : undefined;
}

// Over HTTP/2 the socket is a stand-in, and no instance of TLSSocket.
function isSecure(socket: Socket): socket is TLSSocket {
  return "encrypted" in socket && socket.encrypted === true;
}

/** The path of a request target, without the query. */
export function pathOf(target: string | undefined): string {
  if (target === undefined) return "";
  const query = target.indexOf("?");
  return query < 0 ? target : target.slice(0, query);
}

function isUnaryJson(request: NodeRequest): boolean {
  return request.headers["content-type"]?.startsWith("application/json") === true;
}

/** Keeps references, not copies; connect stops reading at its own limit. */
async function* keeping(body: AsyncIterable<Uint8Array>, pieces: Uint8Array[]): AsyncGenerator<Uint8Array> {
  for await (const piece of body) {
    pieces.push(piece);
    yield piece;
  }
}
