import { once } from "node:events";
import { connect as connectH2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { setImmediate as turn } from "node:timers/promises";
import { afterAll, beforeAll, expect, test } from "vitest";
import { type EchoServer, startEcho } from "./server.fixture.ts";
import { startsHttp2 } from "./sniff.ts";

const PREFACE = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
const EMPTY_SETTINGS = Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]);
const GET = "GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n";

let echo: EchoServer;
beforeAll(async () => {
  echo = await startEcho({}, { limits: { sniffTimeoutMs: 150, headersTimeoutMs: 150 } });
});
afterAll(() => echo.server.close(0));

async function dial(): Promise<Socket> {
  const socket = connect(echo.server.port, "127.0.0.1").setNoDelay(true);
  await once(socket, "connect");
  return socket;
}

async function writeEach(socket: Socket, bytes: Iterable<number>): Promise<void> {
  for (const byte of bytes) {
    await new Promise((resolve) => socket.write(Buffer.of(byte), resolve));
    await turn();
  }
}

async function rest(socket: Socket): Promise<string> {
  const pieces: Buffer[] = [];
  for await (const piece of socket as AsyncIterable<Buffer>) pieces.push(piece);
  return Buffer.concat(pieces).toString("latin1");
}

test("recognizes HTTP/2 by its whole preface and nothing less", () => {
  expect(startsHttp2(Buffer.from(""))).toBeUndefined();
  expect(startsHttp2(Buffer.from("P"))).toBeUndefined();
  expect(startsHttp2(PREFACE.subarray(0, 23))).toBeUndefined();
  expect(startsHttp2(PREFACE)).toBe(true);
  expect(startsHttp2(Buffer.concat([PREFACE, EMPTY_SETTINGS]))).toBe(true);
  expect(startsHttp2(Buffer.from("PO"))).toBe(false);
  expect(startsHttp2(Buffer.from("PRI * HTTP/1.1\r\n"))).toBe(false);
  expect(startsHttp2(Buffer.from("\x16\x03\x01"))).toBe(false);
});

test.each(["GET", "POST", "PUT", "PATCH"])("reads an HTTP/1.1 %s that comes byte by byte", async (method) => {
  const socket = await dial();
  await writeEach(socket, Buffer.from(GET.replace("GET", method)));
  expect(await rest(socket)).toContain("200 OK");
});

test("reads an HTTP/2 preface that comes byte by byte", async () => {
  const socket = await dial();
  await writeEach(socket, PREFACE);
  socket.write(EMPTY_SETTINGS);
  const [first] = (await once(socket, "data")) as [Buffer];
  expect(first[3]).toBe(4); // a SETTINGS frame
  socket.destroy();
});

test("reads a whole request in one packet, and a second one on the same connection", async () => {
  const socket = await dial();
  socket.write(GET.replace("connection: close\r\n", "") + GET);
  expect((await rest(socket)).match(/200 OK/g)).toHaveLength(2);
});

test.each([
  ["a TLS hello", Buffer.from([0x16, 0x03, 0x01, 0x02, 0x00, 0x01, 0x00])],
  ["noise", Buffer.from("\0\0\0\0garbage\r\n\r\n")],
  ["a preface that goes wrong at its end", Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\rX")],
])("answers %s with 400 and closes", async (_name, bytes) => {
  const socket = await dial();
  socket.write(bytes);
  expect(await rest(socket)).toContain("400 Bad Request");
});

test("closes a connection that says nothing, or only half of a preface", async () => {
  for (const start of [Buffer.alloc(0), PREFACE.subarray(0, 10)]) {
    const socket = await dial();
    socket.write(start);
    expect(await rest(socket)).toBe("");
  }
});

test("times out a caller who sends headers one line at a time for ever", async () => {
  const socket = await dial();
  socket.write("POST /reeve.test.v1.Echo/Say HTTP/1.1\r\nhost: localhost\r\n");
  expect(await rest(socket)).toContain("408 Request Timeout");
});

test("survives callers who reset the connection at any point", async () => {
  for (const start of [Buffer.alloc(0), PREFACE.subarray(0, 5), PREFACE, Buffer.from(GET.slice(0, 20))]) {
    const socket = await dial();
    socket.write(start);
    await turn();
    socket.resetAndDestroy();
  }
  const session = connectH2(echo.url);
  await once(session, "remoteSettings");
  session.destroy();
  expect((await fetch(`${echo.url}/healthz`)).status).toBe(200);
});

test("closes a connection for each one beyond its limit", async () => {
  const small = await startEcho({}, { limits: { maxConnections: 1, sniffTimeoutMs: 120_000 } });
  const first = connect(small.server.port, "127.0.0.1");
  await once(first, "connect");
  const second = connect(small.server.port, "127.0.0.1");
  expect(await rest(first)).toBe("");
  second.end(GET);
  expect(await rest(second)).toContain("200 OK");
  await small.server.close(0);
});

test("closes an HTTP/2 connection at once when its peer has hung up, answers under way or not", async () => {
  const patient = await startEcho({}, { limits: { pingIntervalMs: 600_000, sniffTimeoutMs: 600_000 } });
  const watch = Buffer.from([
    ...[0, 0, 61, 1, 4, 0, 0, 0, 1, 0x83, 0x86, 0x41, 1, 0x61, 0x44, 28],
    ...Buffer.from("/grpc.health.v1.Health/Watch"),
    ...[0x5f, 22],
    ...Buffer.from("application/grpc+proto"),
  ]);
  watch.writeUIntBE(watch.length - 9, 0, 3);
  for (const more of [
    Buffer.alloc(0),
    Buffer.concat([watch, Buffer.from([0, 0, 5, 0, 1, 0, 0, 0, 1, 0, 0, 0, 0, 0])]),
  ]) {
    const socket = connect({ port: patient.server.port, host: "127.0.0.1", allowHalfOpen: true });
    socket.write(Buffer.concat([PREFACE, EMPTY_SETTINGS, more]));
    await once(socket, "data");
    socket.end();
    await rest(socket); // its end is the server's
  }
  await patient.server.close(0);
});
