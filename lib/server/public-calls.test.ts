import { once } from "node:events";
import { connect as connectH2 } from "node:http2";
import { connect, type Socket } from "node:net";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterEach, expect, test } from "vitest";
import { Health } from "../../gen/ts/grpc/health/v1/health_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { eventually } from "../../testkit/eventually.ts";
import { faultDetail } from "../fault/fault.ts";
import { createServiceTransport, type ServiceTransport } from "../rpc-client/transport.ts";
import { Echo } from "./echo.fixture.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";
import type { ServerOptions } from "./server.ts";
import { transportFor, ways } from "./transports.fixture.ts";

let echo: EchoServer;
const opened: ServiceTransport[] = [];
afterEach(async () => {
  for (const transport of opened.splice(0)) transport.close();
  await echo.server.close(0);
});

async function start(limits: ServerOptions["limits"] = {}): Promise<void> {
  echo = await startEcho({}, { limits });
}

/** A connection of its own. */
function dial(token?: string): ServiceTransport {
  const transport = createServiceTransport({ baseUrl: echo.url, ...(token !== undefined && { token }) });
  opened.push(transport);
  return transport;
}

/** Opens a watch and waits for its first answer: undefined, or what it was refused with. */
async function watch(transport: ServiceTransport): Promise<ConnectError | undefined> {
  const answers = createClient(Health, transport).watch({})[Symbol.asyncIterator]();
  try {
    await answers.next();
    return undefined;
  } catch (error: unknown) {
    return ConnectError.from(error);
  }
}

function reasonOf(error: ConnectError | undefined): unknown {
  const detail = faultDetail(error);
  return detail && [error?.code, detail.reason, detail.metadata.limit];
}

const RATE_LIMITED = [Code.ResourceExhausted, ErrorReason.RATE_LIMITED];

test("a connection has eight public calls at a time, and one that ends makes room", async () => {
  await start();
  const transport = dial();
  const leaving = new AbortController();
  const first = createClient(Health, transport).watch({}, { signal: leaving.signal })[Symbol.asyncIterator]();
  await first.next();
  for (let i = 1; i < 8; i++) expect(await watch(transport)).toBeUndefined();
  expect(reasonOf(await watch(transport))).toEqual([...RATE_LIMITED, "8"]);
  expect(await watch(dial())).toBeUndefined();
  leaving.abort();
  await first.next().catch(() => undefined);
  await eventually(async () => expect(await watch(transport)).toBeUndefined());
});

test("a connection on which a caller has authenticated is not counted", async () => {
  await start();
  const transport = dial("agent-token");
  await createClient(Echo, transport).say({ text: "it is me" });
  for (let i = 0; i < 12; i++) expect(await watch(transport)).toBeUndefined();
});

test.each([
  ["of an address", { publicCallsPerAddress: 3 }, "3"],
  ["of the server", { maxPublicCalls: 4 }, "4"],
  ["of watches", { maxHealthWatches: 5 }, "5"],
])("the limit %s holds over all connections", async (_name, limits, limit) => {
  await start(limits);
  for (let i = 0; i < Number(limit); i++) expect(await watch(dial())).toBeUndefined();
  expect(reasonOf(await watch(dial()))).toEqual([...RATE_LIMITED, limit]);
  // What is short, and what needs a token, goes on.
  const authenticated = dial("agent-token");
  expect(await createClient(Echo, authenticated).say({ text: "x" })).toMatchObject({ text: "x" });
  expect((await fetch(`${echo.url}/healthz`)).status).toBe(200);
});

test.each(ways)("%s over HTTP/%s in %s: a public call may send 64 KiB, one with a token more", async (...way) => {
  await start();
  const service = "x".repeat(64 * 1024);
  const error = await createClient(Health, transportFor(way, echo.url, ""))
    .check({ service })
    .then(() => undefined, ConnectError.from);
  expect(reasonOf(error)).toEqual([Code.InvalidArgument, ErrorReason.INPUT_TOO_LARGE, String(64 * 1024)]);
  const data = { text: service };
  expect(await createClient(Echo, transportFor(way, echo.url)).say({ data })).toMatchObject({ data });
});

test("a public call that says it is too large is refused before it is sent", async () => {
  await start();
  const answer = await fetch(`${echo.url}/grpc.health.v1.Health/Check`, {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: `{"service":"${"x".repeat(70_000)}"}`,
  });
  const { details } = (await answer.json()) as { details: { debug?: { reason?: string } }[] };
  expect(details.map(({ debug }) => debug?.reason)).toContain("ERROR_REASON_INPUT_TOO_LARGE");
});

test("over HTTP/2 a request whose body does not end is reset, a caller's own stream is not", async () => {
  await start({ requestTimeoutMs: 100, headersTimeoutMs: 100 });
  const ended = Promise.withResolvers<void>();
  const both = createClient(Echo, dial("agent-token")).both(
    (async function* () {
      yield { text: "first" };
      await ended.promise;
      yield { text: "later" };
    })(),
  );
  const answers = both[Symbol.asyncIterator]();
  expect((await answers.next()).value).toMatchObject({ text: "first" });
  const session = connectH2(echo.url);
  for (const path of ["/grpc.health.v1.Health/Check", "/reeve.test.v1.Echo/Say", "/nothing/here"]) {
    const headers = { ":method": "POST", ":path": path, "content-type": "application/json" };
    const stream = session.request({ ...headers, authorization: "Bearer agent-token" }).on("error", () => undefined);
    stream.resume().write('{"');
    await once(stream, "close");
    expect(stream.closed).toBe(true);
  }
  session.destroy();
  ended.resolve();
  expect((await answers.next()).value).toMatchObject({ text: "later" });
});

test("strangers do not fill a port: who is known stays, and who comes to authenticate gets in", async () => {
  await start({ maxConnections: 8 });
  const known = dial("agent-token");
  await createClient(Echo, known).say({ text: "before" });
  const strangers: Socket[] = [];
  const preface = Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\u0004\0\0\0\0\0", "latin1");
  for (let i = 0; i < 40; i++) {
    const socket = connect(echo.server.port, "127.0.0.1").on("error", () => undefined);
    await once(socket, "connect");
    if (i % 2 === 0) socket.write(preface);
    strangers.push(socket.resume());
  }
  expect(await createClient(Echo, known).say({ text: "after" })).toMatchObject({ text: "after" });
  expect(await createClient(Echo, dial("agent-token")).say({ text: "new" })).toMatchObject({ text: "new" });
  await eventually(() => expect(strangers.filter(({ destroyed }) => !destroyed).length).toBeLessThanOrEqual(6));
  for (const socket of strangers) socket.destroy();
});
