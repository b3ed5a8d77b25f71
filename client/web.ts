/**
 * The SDK for browsers and other runtimes with fetch: as `reeve/client`, without what needs HTTP/2 streams of Node's.
 *
 * @module
 */
import { createFetchClient } from "@connectrpc/connect/protocol";
import { createTransport } from "@connectrpc/connect/protocol-connect";
import type { Call } from "../gen/ts/reeve/call/v1/call_pb.ts";
import { type CallClient, type CallOptions, callTool as callOverStream, type NewCall } from "./call-tool.ts";
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
  const { url: _url, ...common } = commonOptions(options);
  const closing = new AbortController();
  const transport = createTransport({
    ...common,
    httpClient: createFetchClient((input, init) =>
      fetch(new Request(input, { ...init, signal: anySignal(input, init, closing.signal) })),
    ),
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
export function callTool(client: CallClient, request: NewCall, options: CallOptions = {}): Promise<Call> {
  return callOverStream(client, request, { open: openWatchedCalls, ...options });
}

function anySignal(input: RequestInfo | URL, init: RequestInit | undefined, closing: AbortSignal): AbortSignal {
  const own = init?.signal ?? (input instanceof Request ? input.signal : undefined);
  return own ? AbortSignal.any([own, closing]) : closing;
}
