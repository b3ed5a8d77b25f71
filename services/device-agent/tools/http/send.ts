import { type IncomingMessage, request as requestPlain } from "node:http";
import { request as requestTls } from "node:https";
import { isIP, type LookupFunction } from "node:net";
import { ErrorReason } from "../../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../../lib/fault/fault.ts";
import { plainHost } from "../../../../lib/hosts/host-list.ts";
import { resolveHost } from "../../hosts/resolve-host.ts";
import { throwIfAborted } from "../outcome.ts";
import type { ToolContext } from "../tool.ts";
import type { ConnectOptions } from "./options.ts";

/** A request to one address. */
export interface OutgoingRequest {
  url: URL;
  /** The field of the arguments that the address is from. */
  field: string;
  method: "GET" | "POST" | "PUT";
  /** Lower case. */
  headers: Readonly<Record<string, string>>;
  body?: string;
  /** How many bytes of the body to take. */
  maxBytes: number;
}

/** What came back. */
export interface Answer {
  status: number;
  /** Lower case; several of one name are joined. */
  headers: Record<string, string>;
  body: Buffer;
  truncated: boolean;
}

/** The most bytes of an answer's headers. */
const MAX_HEADER_BYTES = 32 * 1024;

/** What the call may connect with. */
export type SendContext = Pick<ToolContext, "hosts" | "signal" | "timeoutMs">;

/**
 * Sends one request and reads the answer; follows no redirect and keeps no connection. It goes to an address that was checked, and
 * no name is looked up after that. Faults: those of resolveHost; TOOL_FAILED{host,errno} where the exchange fails; TIMED_OUT and
 * CANCELED.
 */
export async function send(context: SendContext, request: OutgoingRequest, options: ConnectOptions): Promise<Answer> {
  const { url } = request;
  const port = portOf(url);
  const target = { field: request.field, host: url.hostname, port, defaultPort: defaultPortOf(url) };
  const addresses = await resolveHost(context.hosts, target, options.resolve);
  throwIfAborted(context);
  const lookup: LookupFunction = (_host, { all }, done) => {
    const [first = { address: "", family: 4 }] = addresses;
    if (all) done(null, addresses);
    else done(null, first.address, first.family);
  };
  try {
    return await exchange(context.signal, request, { port, lookup, ...(options.ca && { ca: options.ca }) });
  } catch (error: unknown) {
    throwIfAborted(context);
    throw failed(url, error);
  }
}

/** The port that an address means. */
export function portOf(url: URL): number {
  return url.port === "" ? defaultPortOf(url) : Number(url.port);
}

function defaultPortOf(url: URL): number {
  return url.protocol === "https:" ? 443 : 80;
}

/** Whether only the host can read what is sent. */
export function isEncrypted(url: URL): boolean {
  const host = plainHost(url.hostname);
  return url.protocol === "https:" || host === "::1" || (isIP(host) === 4 && host.startsWith("127."));
}

interface Connection {
  port: number;
  lookup: LookupFunction;
  ca?: string;
}

function exchange(signal: AbortSignal, request: OutgoingRequest, connection: Connection): Promise<Answer> {
  const { url, method, headers, body, maxBytes } = request;
  const start = url.protocol === "https:" ? requestTls : requestPlain;
  return new Promise((resolve, reject) => {
    const sent = start({
      ...connection,
      host: plainHost(url.hostname),
      path: `${url.pathname}${url.search}`,
      method,
      headers: {
        "accept-encoding": "identity",
        "user-agent": "reeve",
        ...headers,
        ...(body === undefined ? {} : { "content-length": Buffer.byteLength(body) }),
      },
      agent: false,
      maxHeaderSize: MAX_HEADER_BYTES,
      signal,
    });
    sent.on("error", reject);
    sent.on("response", (response) => {
      read(response, maxBytes).then(resolve, reject);
    });
    sent.end(body);
  });
}

async function read(response: IncomingMessage, maxBytes: number): Promise<Answer> {
  const chunks: Buffer[] = [];
  let length = 0;
  // Leaving the loop ends the connection.
  for await (const chunk of response as AsyncIterable<Buffer>) {
    chunks.push(chunk);
    length += chunk.length;
    if (length > maxBytes) break;
  }
  const headers = Object.entries(response.headers).map(([name, value]) => [name, [value].flat().join(", ")] as const);
  return {
    status: response.statusCode ?? 0,
    headers: Object.fromEntries(headers),
    body: Buffer.concat(chunks).subarray(0, maxBytes),
    truncated: length > maxBytes,
  };
}

/** Without the error's own words, which may hold what was sent. */
function failed(url: URL, cause: unknown): Error {
  const errno = (cause as NodeJS.ErrnoException).code ?? "EUNKNOWN";
  const message = `${url.protocol}//${url.host} could not be asked: ${WORDS.get(errno) ?? errno}`;
  return fault(ErrorReason.TOOL_FAILED, { host: url.hostname.slice(0, 253), errno }, { message, cause });
}

const WORDS: ReadonlyMap<string, string> = new Map([
  ["ECONNREFUSED", "nothing listens there"],
  ["ECONNRESET", "the connection was closed"],
  ["ETIMEDOUT", "nothing answers there"],
  ["HPE_HEADER_OVERFLOW", "its headers are too long"],
]);
