import type { IncomingHttpHeaders, ServerResponse } from "node:http";
import type { Principal } from "../auth/principal.ts";
import type { NodeRequest, NodeResponse } from "./adapter.ts";
import { bodyTooLarge } from "./body-limits.ts";
import { readWhole } from "./read-body.ts";

/**
 * Serves a plain HTTP path. False: the path is not its own, and the caller gets 404. What it throws is written as a fault.
 */
export type Fallback = (request: PlainRequest, response: PlainResponse) => boolean | Promise<boolean>;

/**
 * What WWW-Authenticate says on a path to a caller that is not let in (RFC 9110, 11.6.1), by whether it has shown a token.
 * Undefined: the header is not sent.
 */
export type Challenge = (path: string, hasToken: boolean) => string | undefined;

/** A request that is no RPC. */
export interface PlainRequest {
  readonly method: string;
  /** Without the query, as it was sent. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly headers: IncomingHttpHeaders;
  /** Undefined: neither an Authorization header nor a certificate with a principal. An invalid one never comes this far. */
  readonly principal: Principal | undefined;
  readonly requestId: string;
  /** Aborted when the caller leaves, and when the server is done waiting for a drain. */
  readonly signal: AbortSignal;
  /** The whole body. Throws INPUT_TOO_LARGE beyond `maxBytes`, default 1 MiB. */
  readBody(maxBytes?: number): Promise<Uint8Array>;
}

/** The answer to a request that is no RPC. One of `json` and `fault`, or the raw response. */
export interface PlainResponse {
  json(status: number, value: unknown): void;
  /** Writes {"code","reason","message","metadata","violations"} with the HTTP status of the Connect code. */
  fault(error: unknown): void;
  /** Node's own response, for streams and pages; over HTTP/2 its look-alike (https://nodejs.org/api/http2.html#compatibility-api). */
  readonly raw: ServerResponse;
}

/** Writes a JSON answer. */
export function sendJson(response: NodeResponse, status: number, value: unknown): void {
  // As text, which node writes together with the headers.
  const body = JSON.stringify(value);
  response.statusCode = status;
  response.setHeader("content-type", "application/json");
  response.setHeader("content-length", Buffer.byteLength(body));
  response.end(body);
}

const DEFAULT_BODY = 1024 * 1024;

/** Reads a whole body. Throws INPUT_TOO_LARGE as soon as it is clear that there is more than `maxBytes`. */
export function readBody(request: NodeRequest, maxBytes = DEFAULT_BODY): Promise<Uint8Array> {
  return readWhole(request, maxBytes, () => bodyTooLarge(maxBytes));
}
