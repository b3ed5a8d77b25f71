import type { Interceptor, Transport } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport, createGrpcWebTransport } from "@connectrpc/connect-node";

const bearer =
  (token: string): Interceptor =>
  (next) =>
  (request) => {
    if (token !== "") request.header.set("authorization", `Bearer ${token}`);
    return next(request);
  };

const query: Interceptor = (next) => (request) => next({ ...request, url: `${request.url}?by=connect` });

/** A way to call: protocol, HTTP version and codec. */
export type Way = [
  "connect" | "connect with a deadline" | "connect with a query" | "grpc" | "grpc-web",
  "1.1" | "2",
  "binary" | "json",
];

/**
 * Every way to call. gRPC over HTTP/1.1 does not exist. A unary call of the Connect protocol is served by connect's own handler
 * only where it says something special, such as a query.
 */
export const ways: Way[] = [
  ["connect", "1.1", "binary"],
  ["connect", "1.1", "json"],
  ["connect", "2", "binary"],
  ["connect", "2", "json"],
  ["connect with a deadline", "1.1", "binary"],
  ["connect with a deadline", "2", "json"],
  ["connect with a query", "1.1", "binary"],
  ["connect with a query", "1.1", "json"],
  ["connect with a query", "2", "binary"],
  ["connect with a query", "2", "json"],
  ["grpc", "2", "binary"],
  ["grpc", "2", "json"],
  ["grpc-web", "1.1", "binary"],
  ["grpc-web", "2", "binary"],
  ["grpc-web", "2", "json"],
];

/** connect-node's own transport for a way; not ours, so that the server is tested against what others use. An empty token sends none. */
export function transportFor([protocol, httpVersion, codec]: Way, baseUrl: string, token = "agent-token"): Transport {
  const common = { baseUrl, useBinaryFormat: codec === "binary", interceptors: [bearer(token)] };
  const options =
    httpVersion === "2"
      ? { ...common, httpVersion, nodeOptions: { maxSessionMemory: 200 } } // for the large messages that tests send
      : { ...common, httpVersion };
  switch (protocol) {
    case "connect":
      return createConnectTransport(options);
    case "connect with a deadline":
      return createConnectTransport({ ...options, defaultTimeoutMs: 600_000 });
    case "connect with a query":
      return createConnectTransport({ ...options, interceptors: [...common.interceptors, query] });
    case "grpc":
      return createGrpcTransport(options);
    case "grpc-web":
      return createGrpcWebTransport(options);
  }
}
