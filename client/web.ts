/**
 * The SDK for browsers and other runtimes with fetch: as `reeve/client`, without what needs HTTP/2 streams of Node's.
 *
 * @module
 */
import type { UniversalClientFn } from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import { type CallClient, type CallOptions, callTool as callOverStream, type NewCall } from "./call-tool.ts";
import type { CompleteCall } from "./complete-call.ts";
import { commonOptions, type ReeveTransport, type TransportOptions } from "./transport.ts";
import { openWatchedCalls } from "./watched-calls.ts";

export * from "./sdk.ts";

/** The most bytes of one message. */
const MAX_MESSAGE = 16 * 1024 * 1024;

/** How a transport over fetch is made. */
export interface ReeveTransportOptions extends TransportOptions {
  /** Default: the runtime's own. */
  fetch?: typeof globalThis.fetch;
}

/**
 * A transport to a control plane, over Connect and fetch. RPCs that send a stream do not work with it. Throws where a token
 * would cross a network in cleartext.
 */
export function createReeveTransport({ fetch = globalThis.fetch, ...options }: ReeveTransportOptions): ReeveTransport {
  const { url: _url, headers: _headers, ...common } = commonOptions(options);
  const closing = new AbortController();
  const transport = createTransport({
    ...common,
    httpClient: httpClientOf(fetch, closing.signal),
    useBinaryFormat: true,
    acceptCompression: [],
    sendCompression: null,
    compressMinBytes: 1024,
    readMaxBytes: MAX_MESSAGE,
    writeMaxBytes: MAX_MESSAGE,
  });
  return {
    unary: transport.unary.bind(transport),
    stream: transport.stream.bind(transport),
    close: () => closing.abort(),
  };
}

/** As `callTool` over HTTP/2: sends the call by CallTool and follows it by WatchCall. */
export function callTool(client: CallClient, request: NewCall, options: CallOptions = {}): Promise<CompleteCall> {
  return callOverStream(client, request, { open: openWatchedCalls, ...options });
}

/** What Connect sends and reads by. A request is sent whole: not every runtime can send a stream. */
function httpClientOf(fetch: typeof globalThis.fetch, closing: AbortSignal): UniversalClientFn {
  return async ({ url, method, header, body, signal }) => {
    const response = await fetch(url, {
      method,
      headers: header,
      signal: AbortSignal.any(signal === undefined ? [closing] : [signal, closing]),
      ...(body !== undefined && {
        body: new Blob(await Array.fromAsync(body as AsyncIterable<Uint8Array<ArrayBuffer>>)),
      }),
    });
    return { status: response.status, header: response.headers, body: chunksOf(response.body), trailer: new Headers() };
  };
}

async function* chunksOf(body: ReadableStream<Uint8Array> | null): AsyncGenerator<Uint8Array> {
  if (body === null) return;
  const reader = body.getReader();
  try {
    for (let chunk = await reader.read(); !chunk.done; chunk = await reader.read()) yield chunk.value;
  } finally {
    await reader.cancel().catch(() => undefined);
  }
}
