import { createServer, type Http2ServerRequest, type Http2ServerResponse } from "node:http2";
import type { AddressInfo } from "node:net";
import { create, toBinary } from "@bufbuild/protobuf";
import { ConnectError, createClient, type Interceptor, type Transport } from "@connectrpc/connect";
import { createConnectTransport } from "@connectrpc/connect-node";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { eventually } from "../../../testkit/eventually.ts";
import { Echo, EchoMessageSchema } from "../../server/echo.fixture.ts";
import { createServiceTransport } from "../transport.ts";

const hello = toBinary(EchoMessageSchema, create(EchoMessageSchema, { text: "hello" }));
const proto = { "content-type": "application/proto" };
const json = { "content-type": "application/json" };

type Serve = (response: Http2ServerResponse) => void;

function answer(status: number, headers: Record<string, string | string[]>, body: string | Uint8Array): Serve {
  return (response) => {
    response.writeHead(status, headers);
    response.end(body);
  };
}

/** What a server answers to the method, by the name that the request's text has. */
const ANSWERS = new Map<string, Serve>([
  ["a message", answer(200, { ...proto, "x-a": "1", "trailer-x-b": "2", "set-cookie": ["c=3", "d=4"] }, hello)],
  ["an empty message", answer(200, proto, "")],
  [
    "a message in pieces",
    (response) => {
      response.writeHead(200, proto);
      response.write(hello.subarray(0, 3));
      setTimeout(() => response.end(hello.subarray(3)), 20);
    },
  ],
  ["no message of that kind", answer(200, proto, "\u0007\u0007\u0007")],
  ["too much", answer(200, proto, new Uint8Array(2000))],
  [
    "a fault",
    answer(
      403,
      json,
      JSON.stringify({ code: "permission_denied", message: "no", details: [{ type: "a.B", value: "AAE" }] }),
    ),
  ],
  ["an error without a code", answer(500, { ...json, "x-why": "y" }, "{}")],
  ["an error that is no JSON", answer(500, json, "{")],
  ["an error of a proxy", answer(502, { "content-type": "text/html" }, "<html>")],
  ["an empty error", answer(404, {}, "")],
  ["another codec", answer(200, json, "{}")],
  ["no codec", answer(200, {}, hello)],
  ["compression", answer(200, { ...proto, "content-encoding": "gzip" }, hello)],
  ["no compression", answer(200, { ...proto, "content-encoding": "identity" }, hello)],
  ...[1, 2, 7, 8, 11, 12, 13].map((code): [string, Serve] => [
    `a reset with code ${code}`,
    (response) => response.stream.close(code),
  ]),
  [
    "a reset after the headers",
    (response) => {
      response.writeHead(200, proto);
      response.write("\n");
      setTimeout(() => response.stream.close(2), 20);
    },
  ],
  ["nothing", () => undefined],
]);

const server = createServer();
const received: Http2ServerRequest[] = [];
let ours: Transport & { close(): void };
let theirs: Transport;
let baseUrl = "";

beforeAll(async () => {
  server.on("request", (request: Http2ServerRequest, response: Http2ServerResponse) => {
    received.push(request);
    request.resume();
    request.on("error", () => undefined);
    request.on("end", () => ANSWERS.get(String(request.headers["x-ask"]))?.(response));
  });
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  baseUrl = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const options = { readMaxBytes: 1000 };
  ours = createServiceTransport({ baseUrl, token: "t", ...options });
  const authorize: Interceptor = (next) => (request) => {
    request.header.set("authorization", "Bearer t");
    return next(request);
  };
  const interceptors = [authorize];
  theirs = createConnectTransport({ baseUrl, httpVersion: "2", acceptCompression: [], interceptors, ...options });
});
afterAll(() => {
  ours.close();
  server.close();
});

interface Options {
  timeoutMs?: number;
  signal?: AbortSignal;
}

/** All that a caller gets to see. */
async function outcome(transport: Transport, ask: string, options: Options = {}): Promise<unknown> {
  const seen: [string, string][][] = [];
  const note = (headers: Headers): void => void seen.push([...headers].filter(([name]) => name !== "date"));
  try {
    const message = await createClient(Echo, transport).say(
      { text: "x" },
      { ...options, headers: { "x-ask": ask }, onHeader: note, onTrailer: note },
    );
    return { message, seen };
  } catch (error: unknown) {
    const { code, rawMessage, details, metadata } = error as ConnectError;
    return {
      isConnect: error instanceof ConnectError,
      code,
      rawMessage,
      details,
      metadata: [...metadata].filter(([name]) => name !== "date"),
    };
  }
}

describe("is what connect-node's own client gives", () => {
  test.each([...ANSWERS.keys()].filter((name) => name !== "nothing"))("%s", async (name) => {
    const expected = await outcome(theirs, name, { timeoutMs: 2000 });
    expect(await outcome(ours, name, { timeoutMs: 2000 })).toEqual(expected);
  });

  test("a deadline, an abort before, and an abort meanwhile", async () => {
    const cases: (() => Options)[] = [
      () => ({ timeoutMs: 30 }),
      () => ({ signal: AbortSignal.abort() }),
      () => ({ signal: AbortSignal.abort(new Error("mine")) }),
      () => ({ signal: AbortSignal.timeout(30) }),
    ];
    for (const options of cases)
      expect(await outcome(ours, "nothing", options())).toEqual(await outcome(theirs, "nothing", options()));
  });
});

test("a call that is given up is reset, so that the server knows", async () => {
  const stop = new AbortController();
  received.length = 0;
  const call = outcome(ours, "nothing", { signal: stop.signal });
  await eventually(() => expect(received).toHaveLength(1));
  stop.abort();
  await call;
  await eventually(() => expect(received[0]?.stream).toMatchObject({ destroyed: true, rstCode: 8 }));
});

test("a request says all that connect-node's does, and how long it is", async () => {
  received.length = 0;
  await outcome(theirs, "a message", { timeoutMs: 5000 });
  await outcome(ours, "a message", { timeoutMs: 5000 });
  const [their, our] = received.map(({ headers }) => ({ ...headers }));
  delete their?.["user-agent"];
  expect(our).toEqual({ ...their, "content-length": "3" });
});

test("takes no answer that a reset without an error cut off", async () => {
  ANSWERS.set("half", (response) => {
    response.writeHead(200, { ...proto, "content-length": String(hello.length) });
    response.write(hello.subarray(0, 3));
    setTimeout(() => response.stream.close(0), 20);
  });
  expect(await outcome(ours, "half", { timeoutMs: 2000 })).toMatchObject({ isConnect: true });
});

test("a connection that ends meanwhile ends the call, and the next one connects again", async () => {
  received.length = 0;
  const call = outcome(ours, "nothing");
  await eventually(() => expect(received).toHaveLength(1));
  received[0]?.stream.session?.destroy();
  expect(await call).toMatchObject({ isConnect: true });
  expect(await outcome(ours, "a message")).toMatchObject({ message: { text: "hello" } });
});
