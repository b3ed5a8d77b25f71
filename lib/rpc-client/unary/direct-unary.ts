import type { IncomingHttpHeaders } from "node:http2";
import {
  create,
  type DescMessage,
  type DescMethod,
  type DescMethodUnary,
  type MessageInitShape,
  type MessageShape,
} from "@bufbuild/protobuf";
import { appendHeaders, type Transport, type UnaryResponse } from "@connectrpc/connect";
import { createMethodSerializationLookup } from "@connectrpc/connect/protocol";
import {
  contentTypeUnaryProto,
  errorFromJsonBytes,
  trailerDemux,
  validateResponseWithCompression,
} from "@connectrpc/connect/protocol-connect";
import { type Answer, roundTrip, type Streams } from "./round-trip.ts";

export interface DirectUnaryOptions {
  baseUrl: string;
  streams: Streams;
  /** Sent by calls that do not set them themselves. */
  headers: Readonly<Record<string, string>>;
  readMaxBytes: number;
  defaultTimeoutMs?: number;
  /** What a call rejects with in place of an error. Default: the error. */
  explain?: (error: unknown) => unknown;
}

/**
 * Unary calls of the Connect protocol over HTTP/2, in binary and without compression, as connect-node makes them, errors
 * and deadlines included. Connect-node makes three abort controllers, six sets of headers and several async iterators for
 * each call, which cost more than all the rest of a call.
 */
export function createDirectUnary(options: DirectUnaryOptions): Transport["unary"] {
  const { baseUrl, streams, headers: common, readMaxBytes: maxBytes, defaultTimeoutMs } = options;
  const { explain = (error) => error } = options;
  const prefix = new URL(baseUrl).pathname.replace(/\/$/, "");
  const fixed = {
    "content-type": contentTypeUnaryProto,
    "connect-protocol-version": "1",
  };
  const codecsOf = rememberCodecs(maxBytes);
  return async <I extends DescMessage, O extends DescMessage>(
    method: DescMethodUnary<I, O>,
    signal: AbortSignal | undefined,
    timeoutMs: number | undefined,
    header: HeadersInit | undefined,
    input: MessageInitShape<I>,
  ): Promise<UnaryResponse<I, O>> => {
    const limitMs = timeoutMs === undefined ? defaultTimeoutMs : timeoutMs <= 0 ? undefined : timeoutMs;
    const codecs = codecsOf(method);
    const body = codecs.getI(true).serialize(create(method.input, input));
    const headers: Record<string, string> = {
      ...common,
      ...(header !== undefined && Object.fromEntries(new Headers(header))),
      ...fixed,
      ...(limitMs !== undefined && { "connect-timeout-ms": String(limitMs) }),
      // Whatever cuts the body off, a server does not take what has come for all of it.
      "content-length": String(body.length),
    };
    const path = `${prefix}/${method.parent.typeName}/${method.name}`;
    try {
      const answer = await roundTrip(streams, { path, headers, body, maxBytes, signal, timeoutMs: limitMs });
      return readAnswer(method, answer, (bytes) => codecs.getO(true).parse(bytes));
    } catch (error: unknown) {
      throw explain(error);
    }
  };
}

function readAnswer<I extends DescMessage, O extends DescMessage>(
  method: DescMethodUnary<I, O>,
  { status, headers, body }: Answer,
  parse: (bytes: Uint8Array) => MessageShape<O>,
): UnaryResponse<I, O> {
  if (status !== 200 || headers["content-type"] !== contentTypeUnaryProto || headers["content-encoding"] !== undefined)
    refuse(method, status, webHeaders(headers), body);
  let metadata: [Headers, Headers] | undefined;
  const demuxed = (): [Headers, Headers] => (metadata ??= trailerDemux(webHeaders(headers)));
  return {
    stream: false,
    service: method.parent,
    method,
    message: parse(body),
    get header() {
      return demuxed()[0];
    },
    get trailer() {
      return demuxed()[1];
    },
  };
}

type Codecs<I extends DescMessage, O extends DescMessage> = ReturnType<typeof createMethodSerializationLookup<I, O>>;

/** Makes the codecs of each method once. */
function rememberCodecs(readMaxBytes: number) {
  const known = new WeakMap<DescMethod, unknown>();
  return <I extends DescMessage, O extends DescMessage>(method: DescMethodUnary<I, O>): Codecs<I, O> => {
    const found = known.get(method) as Codecs<I, O> | undefined;
    if (found !== undefined) return found;
    const limits = { readMaxBytes, writeMaxBytes: 0xffffffff };
    const made = createMethodSerializationLookup(method, undefined, undefined, limits);
    known.set(method, made);
    return made;
  };
}

/** Throws where an answer is an error, or no answer of the protocol. */
function refuse(method: DescMethod, status: number, web: Headers, body: Uint8Array): void {
  const { isUnaryError, unaryError } = validateResponseWithCompression(method.methodKind, [], true, status, web);
  if (isUnaryError) throw errorFromJsonBytes(body, appendHeaders(...trailerDemux(web)), unaryError);
}

function webHeaders(headers: IncomingHttpHeaders): Headers {
  const web = new Headers();
  for (const [name, value] of Object.entries(headers)) {
    if (name.startsWith(":") || value === undefined) continue;
    for (const one of Array.isArray(value) ? value : [value]) web.append(name, String(one));
  }
  return web;
}
