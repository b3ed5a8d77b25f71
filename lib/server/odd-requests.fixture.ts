import { once } from "node:events";
import { request as requestH1 } from "node:http";
import { type ClientHttp2Session, connect as connectH2, type IncomingHttpHeaders } from "node:http2";

/** A request that no well-behaved client sends. */
export interface OddRequest {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Uint8Array;
}

/** What came back. `status` 0: nothing did. */
export interface OddAnswer {
  readonly status: number;
  /** Of the headers or trailers, where there is one. */
  readonly grpcStatus: string | undefined;
  readonly text: string;
}

const TYPES = [
  "application/json",
  "application/proto",
  "application/connect+json",
  "application/connect+proto",
  "application/grpc",
  "application/grpc+json",
  "application/grpc-web+proto",
  "application/grpc-web+json",
  "text/plain",
];

const HEADERS: Record<string, string>[] = [
  {},
  { "connect-timeout-ms": "0", "grpc-timeout": "0S" },
  { "connect-timeout-ms": "1", "grpc-timeout": "1n" },
  { "connect-timeout-ms": "9999999999", "grpc-timeout": "99999999H" },
  { "connect-timeout-ms": "99999999", "grpc-timeout": "99999999S" },
  { "connect-timeout-ms": "-1", "grpc-timeout": "1" },
  { "connect-protocol-version": "9", "grpc-accept-encoding": "x".repeat(500) },
  { "content-encoding": "gzip", "grpc-encoding": "gzip", "connect-content-encoding": "gzip" },
  { "content-encoding": "identity", "grpc-encoding": "identity", "connect-content-encoding": "identity" },
];

const frame = (flags: number, length: number, ...data: number[]): Uint8Array => {
  const head = Buffer.alloc(5);
  head.writeUInt8(flags);
  head.writeUInt32BE(length, 1);
  return Buffer.concat([head, Uint8Array.from(data)]);
};

const BODIES: Uint8Array[] = [
  Buffer.from(""),
  Buffer.from("{}"),
  Buffer.from("null"),
  Buffer.from('{"text":'),
  Buffer.from([0xde, 0xad, 0xbe, 0xef]),
  frame(0, 0),
  frame(0, 2, 0x7b, 0x7d),
  frame(0, 2, 0x0a, 0x7f),
  frame(1, 2, 0x7b, 0x7d),
  frame(1, 0),
  frame(2, 2, 0x7b, 0x7d),
  frame(3, 0),
  frame(0x80, 0),
  frame(0xff, 1, 0),
  frame(0, 9),
  frame(0, 0xffffffff, 1),
  Buffer.concat([frame(0, 0), frame(0, 0)]),
];

const QUERIES = ["", "?", "?encoding=proto&message=%FF&base64=1", "?encoding=json&message=a&base64=1", "?encoding=json"]
  .concat([
    "?encoding=json&message=%7B%7D&compression=gzip",
    "?encoding=proto&message=%00",
    "?message=%7B%7D&encoding=x",
  ])
  .concat(["?encoding=json&message=%7B%7D&connect=v9", "?encoding=proto&base64=1&message=!"]);

/** Every content type with every header and body, and queries, for each of the paths of RPCs. */
export function* oddRequests(paths: readonly string[]): Generator<OddRequest> {
  for (const path of paths) {
    for (const type of TYPES) {
      for (const more of HEADERS) {
        for (const body of BODIES) yield { method: "POST", path, headers: { "content-type": type, ...more }, body };
      }
    }
    for (const query of QUERIES) yield { method: "GET", path: path + query, headers: {}, body: Buffer.alloc(0) };
    yield { method: "PUT", path, headers: {}, body: Buffer.from("{}") };
  }
}

/** Sends requests over one HTTP/2 connection, so many at a time. */
export async function askOddly(
  url: string,
  requests: Iterable<OddRequest>,
  headers: Readonly<Record<string, string>>,
  onAnswer: (request: OddRequest, answer: OddAnswer) => void,
): Promise<void> {
  const session = connectH2(url);
  session.on("error", () => undefined);
  await once(session, "connect");
  const waiting = requests[Symbol.iterator]();
  const worker = async (): Promise<void> => {
    for (let next = waiting.next(); next.done !== true; next = waiting.next()) {
      onAnswer(next.value, await askH2(session, next.value, headers));
    }
  };
  await Promise.all(Array.from({ length: 32 }, worker));
  session.close();
}

function askH2(
  session: ClientHttp2Session,
  { method, path, headers, body }: OddRequest,
  more: Readonly<Record<string, string>>,
): Promise<OddAnswer> {
  return new Promise((resolve) => {
    const stream = session.request({ ":method": method, ":path": path, ...headers, ...more });
    let head: IncomingHttpHeaders & { ":status"?: number | undefined } = {};
    let tail: IncomingHttpHeaders = {};
    const pieces: Buffer[] = [];
    stream.on("response", (got) => {
      head = got;
    });
    stream.on("trailers", (got) => {
      tail = got;
    });
    stream.on("data", (piece: Buffer) => pieces.push(piece));
    stream.on("error", () => undefined);
    stream.on("close", () => {
      const grpcStatus = tail["grpc-status"] ?? head["grpc-status"];
      const text = Buffer.concat(pieces).toString("latin1");
      resolve({ status: head[":status"] ?? 0, grpcStatus: grpcStatus?.toString(), text });
    });
    stream.end(body);
  });
}

/** Sends one request over HTTP/1.1, on a connection of its own, with the target as it is. */
export function askH1(url: string, { method, path, headers, body }: OddRequest): Promise<OddAnswer> {
  return new Promise((resolve) => {
    const { hostname, port } = new URL(url);
    const request = requestH1({ host: hostname, port, method, path, headers, agent: false }, (response) => {
      const pieces: Buffer[] = [];
      response.on("data", (piece: Buffer) => pieces.push(piece));
      response.on("close", () => {
        const text = Buffer.concat(pieces).toString("latin1");
        const grpcStatus = response.headers["grpc-status"] ?? response.trailers["grpc-status"];
        resolve({ status: response.statusCode ?? 0, grpcStatus: grpcStatus?.toString(), text });
      });
    });
    request.on("error", () => resolve({ status: 0, grpcStatus: undefined, text: "" }));
    request.end(body);
  });
}

/** True where an answer blames the server, in whatever protocol it came. */
export function blamesServer({ status, grpcStatus, text }: OddAnswer): boolean {
  if (status === 500 || status === 0 || grpcStatus === "13" || grpcStatus === "2") return true;
  return /"code":"(?:internal|unknown)"|ERROR_REASON_INTERNAL|grpc-status: (?:13|2)\r/.test(text);
}
