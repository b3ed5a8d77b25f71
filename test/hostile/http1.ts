import type { Random } from "../chaos/random.ts";

/** Requests over HTTP/1.1 that are wrong in every way that the parts in front of a handler have to deal with. */

const CONTENT_TYPES = [
  "application/json",
  "application/proto",
  "application/grpc",
  "application/grpc-web+proto",
  "application/connect+json",
  "application/connect+proto",
  "text/html",
  "",
  "application/json; charset=\u00ff",
];

const ODD_HEADERS = [
  "connect-timeout-ms: 0",
  "connect-timeout-ms: 99999999999",
  "connect-timeout-ms: -1",
  "grpc-timeout: 0S",
  "grpc-timeout: 99999999H",
  "content-encoding: gzip",
  "connect-content-encoding: br",
  "grpc-encoding: gzip",
  "expect: 100-continue",
  "upgrade: h2c\r\nconnection: upgrade, http2-settings\r\nhttp2-settings: AAMAAABkAAQAAP__",
  "content-length: -1",
  "content-length: 99999999999",
  "transfer-encoding: identity",
  "authorization: Bearer x",
  "authorization: Basic \u0000",
  "host: evil.example",
  "x-request-id: \t\t",
  "te: trailers",
];

const BODIES = [
  "{}",
  "",
  "[]",
  '{"service":5}',
  '{"tool":"fs.list","device":"this","params":{"path":"/nowhere"}}',
  '{"a":'.repeat(200),
  `{"service":"${"x".repeat(3_000)}"}`,
  '{"__proto__":{},"a":1,"a":2}',
  "\u0000\u0000\u0000\u0000\u0002{}",
  "\u0001\u0000\u0000\u0000\u0002{}",
  "\u0000\u007f\u00ff\u00ff\u00ff{}",
];

/** One request for a path; `tokens` may be shown. Not every one is wrong in itself. */
export function http1Request(random: Random, path: string, tokens: readonly string[]): Buffer {
  const method = random.weighted({ POST: 12, GET: 3, PUT: 1, OPTIONS: 1, BREW: 1 });
  const lines = [`${method} ${oddPath(random, path)} HTTP/1.1`, "host: 127.0.0.1"];
  lines.push(`content-type: ${random.pick(CONTENT_TYPES)}`);
  if (random.next() < 0.3) lines.push(random.pick(ODD_HEADERS));
  if (random.next() < 0.15 && tokens.length > 0) lines.push(`authorization: Bearer ${random.pick(tokens)}`);
  const body = Buffer.from(random.pick(BODIES), "latin1");
  if (random.next() < 0.7) lines.push("transfer-encoding: chunked");
  else lines.push(`content-length: ${body.length + (random.next() < 0.2 ? 7 : 0)}`);
  const head = Buffer.from(`${lines.join("\r\n")}\r\n\r\n`, "latin1");
  if (!lines.includes("transfer-encoding: chunked")) return Buffer.concat([head, body]);
  const size = Buffer.from(`${body.length.toString(16)}\r\n`);
  const last = random.next() < 0.85 ? "\r\n0\r\n\r\n" : "\r\n";
  return Buffer.concat([head, ...(body.length === 0 ? [Buffer.from("0\r\n\r\n")] : [size, body, Buffer.from(last)])]);
}

function oddPath(random: Random, path: string): string {
  return random.weighted({ same: 20, nothing: 1, host: 1, query: 1, long: 1 }) === "same"
    ? path
    : random.pick([
        "/",
        "//[::1",
        "*",
        `${path}?connect=v1&encoding=json&message=%7B`,
        `/${"a".repeat(9_000)}`,
        "/%00",
      ]);
}
