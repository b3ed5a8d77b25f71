import type { Random } from "../chaos/random.ts";

/** Frames of HTTP/2 (RFC 9113), made by hand so that they can be wrong. */

export const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");

const TYPE = {
  data: 0,
  headers: 1,
  priority: 2,
  reset: 3,
  settings: 4,
  push: 5,
  ping: 6,
  goaway: 7,
  window: 8,
  more: 9,
};
const END_STREAM = 1;
const END_HEADERS = 4;

/** One frame; its length is the payload's unless another is given. */
export function frame(type: number, flags: number, stream: number, payload: Buffer, length = payload.length): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(length & 0xffffff, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream >>> 0, 5);
  return Buffer.concat([head, payload]);
}

/** What a connection begins with. */
export const CLIENT_PREFACE = Buffer.concat([PREFACE, frame(TYPE.settings, 0, 0, Buffer.alloc(0))]);

/** A header block of literal fields without indexing (RFC 7541 §6.2.2), none longer than 126 bytes. */
function headerBlock(fields: readonly (readonly [string, string])[]): Buffer {
  const text = (value: string): Buffer => {
    const bytes = Buffer.from(value.slice(0, 126), "latin1");
    return Buffer.concat([Buffer.of(bytes.length), bytes]);
  };
  return Buffer.concat(fields.flatMap(([name, value]) => [Buffer.of(0), text(name), text(value)]));
}

const TYPES = [
  "application/grpc",
  "application/grpc+json",
  "application/grpc-web+proto",
  "application/json",
  "application/proto",
  "application/connect+json",
  "text/html",
];

const TIMEOUTS = [
  ["grpc-timeout", "0S"],
  ["grpc-timeout", "1n"],
  ["connect-timeout-ms", "0"],
  ["grpc-encoding", "gzip"],
  ["content-encoding", "gzip"],
  ["content-length", "3"],
] as const;

/** The frames of one request, whole or not. */
export function http2Request(random: Random, stream: number, path: string, tokens: readonly string[]): Buffer {
  const fields: (readonly [string, string])[] = [
    [":method", random.weighted({ POST: 12, GET: 2, DELETE: 1 })],
    [":scheme", "http"],
    [":path", path],
    [":authority", "127.0.0.1"],
    ["content-type", random.pick(TYPES)],
  ];
  if (random.next() < 0.3) fields.push(random.pick(TIMEOUTS));
  if (random.next() < 0.15 && tokens.length > 0) fields.push(["authorization", `Bearer ${random.pick(tokens)}`]);
  const headers = frame(TYPE.headers, END_HEADERS, stream, headerBlock(fields));
  const body = grpcBody(random);
  switch (random.weighted({ whole: 8, open: 3, reset: 3, headersOnly: 2, split: 2 })) {
    case "whole":
      return Buffer.concat([headers, frame(TYPE.data, END_STREAM, stream, body)]);
    case "open":
      return Buffer.concat([headers, frame(TYPE.data, 0, stream, body.subarray(0, 3))]);
    case "reset":
      return Buffer.concat([headers, frame(TYPE.data, 0, stream, body), resetFrame(random, stream)]);
    case "headersOnly":
      return Buffer.concat([headers, resetFrame(random, stream)]);
    default:
      return Buffer.concat([headers, ...[...body].map((byte) => frame(TYPE.data, 0, stream, Buffer.of(byte)))]);
  }
}

function resetFrame(random: Random, stream: number): Buffer {
  const code = Buffer.alloc(4);
  code.writeUInt32BE(Math.floor(random.between(0, 15)));
  return frame(TYPE.reset, 0, stream, code);
}

/** A message with its five bytes before it: a flag that may be wrong, and a length that may be. */
function grpcBody(random: Random): Buffer {
  const message = Buffer.from(
    random.pick(["", "{}", '{"service":""}', "\n\u0003abc", "\u00ff\u00ff\u00ff", "{".repeat(64)]),
  );
  const head = Buffer.alloc(5);
  head.writeUInt8(random.pick([0, 0, 0, 1, 2, 128, 255]));
  head.writeUInt32BE(random.pick([message.length, message.length, 0, 1, 65_537, 0x7fff_ffff, 0xffff_ffff]), 1);
  return Buffer.concat([head, message]);
}

/** Many small frames that mean work and say nothing. */
export function http2Flood(random: Random): Buffer {
  const count = Math.floor(random.between(50, 600));
  const one = random.pick<(index: number) => Buffer>([
    () => frame(TYPE.ping, 0, 0, Buffer.alloc(8)),
    () => frame(TYPE.settings, 0, 0, Buffer.of(0, 3, 0, 0, 0, 1)),
    (index) => frame(TYPE.priority, 0, 2 * index + 1, Buffer.of(0, 0, 0, 0, 16)),
    () => frame(TYPE.window, 0, 0, Buffer.of(0, 0, 0, 1)),
    (index) => frame(TYPE.more, 0, 2 * index + 1, Buffer.alloc(0)),
    (index) =>
      Buffer.concat([
        frame(
          TYPE.headers,
          END_HEADERS | END_STREAM,
          2 * index + 1,
          headerBlock([
            [":method", "GET"],
            [":path", "/healthz"],
            [":scheme", "http"],
          ]),
        ),
        frame(TYPE.reset, 0, 2 * index + 1, Buffer.of(0, 0, 0, 8)),
      ]),
    (index) => frame(TYPE.goaway, 0, 0, Buffer.of(0, 0, 0, index & 127, 0, 0, 0, 0)),
    () => frame(TYPE.data, 0, 1, Buffer.alloc(1)),
  ]);
  return Buffer.concat(Array.from({ length: count }, (_, index) => one(index)));
}

/** A frame of any kind, on any stream, with any length. */
export function oddFrame(random: Random): Buffer {
  const payload = Buffer.from(Array.from({ length: Math.floor(random.between(0, 40)) }, () => random.between(0, 256)));
  const length = random.next() < 0.2 ? Math.floor(random.between(0, 2 ** 24)) : payload.length;
  const flags = Math.floor(random.between(0, 256));
  return frame(Math.floor(random.between(0, 14)), flags, Math.floor(random.between(0, 9)), payload, length);
}
