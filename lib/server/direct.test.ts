import { once } from "node:events";
import { connect as connectH2 } from "node:http2";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { create, toBinary } from "@bufbuild/protobuf";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../fault/fault.ts";
import { EchoMessageSchema } from "./echo.fixture.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";

interface Asked {
  path: string;
  headers: Record<string, string>;
  body: Uint8Array;
}

let echo: EchoServer;
let called = 0;
beforeAll(async () => {
  echo = await startEcho(
    {
      async say(request, { requestHeader, responseHeader, responseTrailer, signal, timeoutMs, url }) {
        called++;
        if (request.text === "boom") throw new Error("password is hunter2");
        if (request.text === "fault") throw fault(ErrorReason.POLICY_DENIED, { rules: "r1" }, { message: "not today" });
        if (request.text === "undefined") throw undefined;
        if (request.text === "wait") {
          expect(timeoutMs()).toBeGreaterThan(0);
          await once(signal, "abort");
          throw signal.reason;
        }
        if (request.text !== "headers") return request;
        expect(timeoutMs()).toBeUndefined();
        responseHeader.set("x-mine", "a");
        responseHeader.append("x-mine", "b");
        responseTrailer.set("x-late", requestHeader.get("x-given") ?? "");
        return { text: url.replace(/:\d+|\?.*/g, "") };
      },
    },
    { newRequestId: () => "request-id", limits: { readMaxBytes: 64 * 1024 } },
  );
});
afterAll(() => echo.server.close(0));

const json = (value: unknown): Uint8Array => Buffer.from(typeof value === "string" ? value : JSON.stringify(value));
const proto = (value: object): Uint8Array => toBinary(EchoMessageSchema, create(EchoMessageSchema, value));
const deep = (levels: number): string => `{"data":{"a":${"[".repeat(levels)}${"]".repeat(levels)}}}`;
const agent = { authorization: "Bearer agent-token" };

const JSON_BODIES: [string, Uint8Array][] = [
  ["a message", json({ text: "héllo", maxBytes: 7, words: ["a"], env: { A: "1" }, data: { x: [1, null] } })],
  ["no fields", json({})],
  ["nothing", json("")],
  ["null", json("null")],
  ["no object", json("[]")],
  ["half of it", json('{"text":')],
  ["bytes that are no UTF-8", Buffer.from([0x7b, 0x22, 0xff, 0x22, 0x3a, 0x31, 0x7d])],
  ["a key twice", json('{"text":"a","text":"b"}')],
  ["an unknown field", json({ inner: { strange: 1 } })],
  ["a wrong type", json({ inner: { maxBytes: "x" } })],
  ["a reserved key", json('{"data":{"__proto__":1}}')],
  ["more depth than allowed", json(deep(40))],
  [
    "more keys than allowed",
    json({ data: Object.fromEntries(Array.from({ length: 1001 }, (_, at) => [`k${at}`, 1])) }),
  ],
  ["broken rules", json({ text: "x".repeat(101), maxBytes: -1, inner: { words: ["ok", ""] } })],
  ["more bytes than allowed", json({ data: { blob: "x".repeat(70_000) } })],
  ["a fault", json({ text: "fault" })],
  ["an error", json({ text: "boom" })],
  ["undefined", json({ text: "undefined" })],
  ["headers", json({ text: "headers" })],
];

const BINARY_BODIES: [string, Uint8Array][] = [
  ["a message", proto({ text: "x", data: { a: [true] } })],
  ["nothing", proto({})],
  ["a field cut off", Buffer.from([0x0a, 0x7f])],
  ["garbage", Buffer.from([0xde, 0xad, 0xbe, 0xef])],
  ["an unknown field", Buffer.from([0xf8, 0x07, 0x01])],
  ["more depth than allowed", nested(200)],
  ["broken rules", proto({ text: "x".repeat(101) })],
  ["more bytes than allowed", proto({ data: { blob: "x".repeat(70_000) } })],
  ["a fault", proto({ text: "fault" })],
  ["an error", proto({ text: "boom" })],
  ["headers", proto({ text: "headers" })],
];

const HEADERS: [string, Record<string, string>][] = [
  ["no token", {}],
  ["a wrong token", { authorization: "Bearer wrong" }],
  ["a request id of the caller", { ...agent, "x-request-id": "abcdef-1", "x-given": "yes" }],
  ["an invalid request id", { ...agent, "x-request-id": "a b" }],
  ["another version of the protocol", { ...agent, "connect-protocol-version": "9" }],
  ["a far deadline", { ...agent, "connect-timeout-ms": "600000" }],
  ["a deadline that is over", { ...agent, "connect-timeout-ms": "0" }],
  ["a deadline longer than the server allows", { ...agent, "connect-timeout-ms": "4000000" }],
  ["a deadline that no timer takes", { ...agent, "connect-timeout-ms": "9999999999" }],
  ["an invalid deadline", { ...agent, "connect-timeout-ms": "x" }],
  ["accepted compression", { ...agent, "accept-encoding": "gzip, br" }],
];

function nested(levels: number): Uint8Array {
  let body = Buffer.alloc(0);
  for (let level = 0; level < levels; level++) {
    const length = body.length < 128 ? [body.length] : [(body.length & 0x7f) | 0x80, body.length >> 7];
    body = Buffer.concat([Buffer.from([0x22, ...length]), body]);
  }
  return body;
}

const requests: [string, Asked][] = [];
for (const [codec, bodies] of [["json", JSON_BODIES] as const, ["proto", BINARY_BODIES] as const]) {
  const type = { "content-type": `application/${codec}` };
  for (const [name, body] of bodies)
    requests.push([`${codec}, ${name}`, { path: "Say", headers: { ...agent, ...type }, body }]);
  const [, first] = bodies[0] ?? ["", Buffer.alloc(0)];
  for (const [name, headers] of HEADERS) {
    requests.push([`${codec}, ${name}`, { path: "Say", headers: { ...headers, ...type }, body: first }]);
  }
  for (const path of ["Admin", "Forgotten", "Missing"]) {
    requests.push([`${codec}, ${path}`, { path, headers: { ...agent, ...type }, body: first }]);
  }
}

requests.push([
  "proto, a deadline that passes",
  {
    path: "Say",
    headers: { ...agent, "content-type": "application/proto", "connect-timeout-ms": "30" },
    body: proto({ text: "wait" }),
  },
]);

/** All that comes back over HTTP/1.1, as it is on the wire, without the time of day. */
async function rawH1({ path, headers, body }: Asked, isChunked: boolean): Promise<string> {
  const socket = connect(echo.server.port, "127.0.0.1");
  const pieces: Buffer[] = [];
  socket.on("data", (piece: Buffer) => pieces.push(piece));
  socket.on("error", () => undefined);
  const length = isChunked ? "transfer-encoding: chunked" : `content-length: ${body.length}`;
  const given = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  socket.write(
    `POST /reeve.test.v1.Echo/${path} HTTP/1.1\r\nhost: 127.0.0.1\r\nconnection: close\r\n${length}\r\n${given.join("")}\r\n`,
  );
  if (isChunked) {
    if (body.length > 0) socket.write(`${body.length.toString(16)}\r\n`);
    if (body.length > 0) socket.write(Buffer.concat([body, Buffer.from("\r\n")]));
    socket.write("0\r\n\r\n");
  } else socket.write(body);
  await once(socket, "close");
  return Buffer.concat(pieces)
    .toString("latin1")
    .replace(/^date: .*\r\n/im, "");
}

async function rawH2({ path, headers, body }: Asked): Promise<unknown> {
  const session = connectH2(echo.url);
  session.on("error", () => undefined);
  const stream = session.request({ ":method": "POST", ":path": `/reeve.test.v1.Echo/${path}`, ...headers });
  stream.on("error", () => undefined);
  stream.end(body);
  let head: unknown;
  stream.on("response", (_headers, _flags, raw?: string[]) => {
    head = (raw ?? Object.entries(_headers).flat()).filter((_, at, all) => all[at - (at % 2)] !== "date");
  });
  const pieces: Buffer[] = [];
  stream.on("data", (piece: Buffer) => pieces.push(piece));
  await once(stream, "close").catch(() => undefined);
  session.close();
  return { head, body: Buffer.concat(pieces).toString("latin1") };
}

/** What connect's own handler serves. */
function byConnect(asked: Asked): Asked {
  return { ...asked, path: `${asked.path}?by=connect` };
}

describe.each(requests)("%s", (_name, asked) => {
  test.each([false, true])(
    "is answered as connect's own handler does over HTTP/1.1, chunked: %s",
    async (isChunked) => {
      const answer = await rawH1(asked, isChunked);
      expect(answer).toMatch(/^HTTP\/1\.1 \d{3} /);
      expect(answer).toBe(await rawH1(byConnect(asked), isChunked));
    },
  );

  test("is answered as connect's own handler does over HTTP/2", async () => {
    const answer = await rawH2(asked);
    expect(answer).toMatchObject({ head: expect.arrayContaining([":status"]) });
    expect(answer).toEqual(await rawH2(byConnect(asked)));
  });
});

test("logs and counts the same for both", async () => {
  const shown: string[] = [];
  for (const [, asked] of requests) {
    for (const each of [asked, byConnect(asked)]) {
      echo.lines.splice(0);
      await rawH1(each, false);
      shown.push(JSON.stringify(echo.lines.map((line) => ({ ...line, time: 0, ms: 0, err: undefined }))));
    }
  }
  const direct = shown.filter((_, at) => at % 2 === 0);
  expect(direct).toEqual(shown.filter((_, at) => at % 2 === 1));
  expect(direct.filter((line) => line !== "[]").length).toBeGreaterThan(20);
  const text = await echo.server.metrics.registry.metrics();
  expect(text).toMatch(/reeve_rpc_in_flight\{service="reeve.test.v1.Echo",method="Say"\} 0/);
});

test("runs nothing of a request whose connection ends half-way", async () => {
  const before = called;
  for (const head of ["content-length: 20\r\n\r\n{}", "transfer-encoding: chunked\r\n\r\n2\r\n{}\r\n"]) {
    const socket = connect(echo.server.port, "127.0.0.1");
    socket.write(
      `POST /reeve.test.v1.Echo/Say HTTP/1.1\r\nhost: 127.0.0.1\r\nauthorization: Bearer agent-token\r\ncontent-type: application/json\r\n${head}`,
    );
    await sleep(50);
    echo.lines.splice(0);
    socket.destroy();
    expect(await echo.logged((line) => line.msg === "rpc")).toMatchObject({ code: "canceled" });
  }
  expect(called).toBe(before);
});

/** A frame of HTTP/2 (https://www.rfc-editor.org/rfc/rfc9113#section-4.1). */
function frame(type: number, flags: number, stream: number, ...payload: Uint8Array[]): Buffer {
  const body = Buffer.concat(payload);
  const head = Buffer.from([0, body.length >> 8, body.length & 0xff, type, flags, 0, 0, 0, stream]);
  return Buffer.concat([head, body]);
}

/** A header that no table has (https://www.rfc-editor.org/rfc/rfc7541#section-6.2.2). */
function header(name: string, value: string): Buffer {
  return Buffer.concat([
    Buffer.from([0, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}

// Not by node's own client, which ends the body before it resets the stream.
test.each([0, 2, 8])("takes no message that a reset with code %i cut off", async (code) => {
  const before = called;
  const socket = connect(echo.server.port, "127.0.0.1");
  socket.on("error", () => undefined);
  socket.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  socket.write(frame(4, 0, 0));
  const headers = [
    header(":method", "POST"),
    header(":scheme", "http"),
    header(":path", "/reeve.test.v1.Echo/Say"),
    header(":authority", "127.0.0.1"),
    header("content-type", "application/proto"),
    header("authorization", "Bearer agent-token"),
  ];
  socket.write(frame(1, 4, 1, ...headers));
  socket.write(frame(0, 0, 1, proto({ text: "half" })));
  await sleep(50);
  echo.lines.splice(0);
  socket.write(frame(3, 0, 1, Buffer.from([0, 0, 0, code])));
  expect(await echo.logged((line) => line.msg === "rpc")).toMatchObject({ code: "canceled", actor: "agent-1" });
  expect(called).toBe(before);
  socket.destroy();
});
