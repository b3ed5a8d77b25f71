import { readFileSync } from "node:fs";
import { createGrpcTransport, Http2SessionManager } from "@connectrpc/connect-node";
import { commonOptions, type ReeveTransport, type TransportOptions } from "./transport.ts";

/** How a transport of Node's is made. */
export interface ReeveTransportOptions extends TransportOptions {
  /** The certificate authority of the control plane, in PEM. Default: those that Node trusts. */
  ca?: string;
  /** A file with it. */
  caFile?: string;
}

/**
 * A transport to a control plane, over gRPC. Use it with `createClient` and any service of this module. It keeps no
 * process alive while idle. Throws where a file cannot be read, or where a token would cross a network in cleartext.
 */
export function createReeveTransport(options: ReeveTransportOptions): ReeveTransport {
  const { url, ...common } = commonOptions(options);
  const ca = options.caFile === undefined ? options.ca : readFileSync(options.caFile, "utf8");
  const sessionManager = new Http2SessionManager(url.origin, {}, ca === undefined ? {} : { ca });
  const transport = createGrpcTransport({ ...common, sessionManager });
  return {
    unary: transport.unary.bind(transport),
    stream: transport.stream.bind(transport),
    close: () => sessionManager.abort(),
  };
}
