import type { Interceptor, Transport } from "@connectrpc/connect";
import { callHeaders } from "./metadata.ts";

/** How a transport is made, wherever it runs. */
export interface TransportOptions {
  /** Where the registry listens, such as "https://reeve.example:7400". Cleartext http is for loopback. */
  url: string;
  /** Sent as a bearer token. */
  token: string;
  /** The device for typed calls that name none. May be left out where there is only one. */
  device?: string;
  /** The deadline of calls that set none, in milliseconds: held calls wait for their human that long. Default: none. */
  timeoutMs?: number;
}

/** A transport that can be closed. It connects by itself, again where it has to. */
export interface ReeveTransport extends Transport {
  /** Ends the connection and the calls on it. What they run goes on. */
  close(): void;
}

/** The settings that both kinds of transport share. Throws where a token would cross a network in cleartext. */
export function commonOptions({ url: address, token, device, timeoutMs }: TransportOptions) {
  const url = new URL(address);
  if (url.protocol !== "https:" && !isLoopback(url.hostname)) {
    throw new TypeError(`${address}: only loopback may be http, since anyone in between could read the token`);
  }
  const headers = { authorization: `Bearer ${token}`, ...callHeaders(device === undefined ? {} : { device }) };
  return {
    url,
    baseUrl: url.href.replace(/\/$/, ""),
    headers,
    interceptors: [setUnlessSet(headers)],
    ...(timeoutMs !== undefined && { defaultTimeoutMs: timeoutMs }),
  };
}

/** Sets headers that a call does not set itself. */
function setUnlessSet(values: Readonly<Record<string, string>>): Interceptor {
  return (next) => (request) => {
    for (const [name, value] of Object.entries(values)) {
      if (!request.header.has(name)) request.header.set(name, value);
    }
    return next(request);
  };
}

function isLoopback(host: string): boolean {
  return host === "localhost" || host === "[::1]" || /^127(\.\d{1,3}){3}$/.test(host);
}
