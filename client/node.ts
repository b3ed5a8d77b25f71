import { readFileSync } from "node:fs";
import { createConnectTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { createDirectUnary } from "../lib/rpc-client/unary/direct-unary.ts";
import { commonOptions, type ReeveTransport, type TransportOptions } from "./transport.ts";

/** The most bytes of one answer. */
const MAX_MESSAGE = 16 * 1024 * 1024;

/** How a transport of Node's is made. */
export interface ReeveTransportOptions extends TransportOptions {
  /** The certificate authority of the control plane, in PEM. Default: those that Node trusts. */
  ca?: string;
  /** A file with it. */
  caFile?: string;
}

/**
 * A transport to a control plane, over Connect and HTTP/2. Use it with `createClient` and any service of this module. It keeps no
 * process alive while idle. Throws where a file cannot be read, or where a token would cross a network in cleartext.
 */
export function createReeveTransport(options: ReeveTransportOptions): ReeveTransport {
  const { url, headers, ...common } = commonOptions(options);
  const ca = options.caFile === undefined ? options.ca : readFileSync(options.caFile, "utf8");
  const sessionManager = new Http2SessionManager(url.origin, {}, ca === undefined ? {} : { ca });
  const transport = createConnectTransport({
    ...common,
    httpVersion: "2",
    acceptCompression: [],
    readMaxBytes: MAX_MESSAGE,
    sessionManager,
  });
  return {
    unary: createDirectUnary({ ...common, streams: sessionManager, headers, readMaxBytes: MAX_MESSAGE }),
    stream: transport.stream.bind(transport),
    close: () => sessionManager.abort(),
  };
}
