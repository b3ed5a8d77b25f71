import { setTimeout } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { faultDetail } from "../fault/fault.ts";
import { callOf } from "../server/call.ts";
import { principalOf } from "../server/context.ts";
import { Echo } from "../server/echo.fixture.ts";
import { inMemoryTransport } from "../server/in-memory.fixture.ts";
import { type EchoServer, people, startEcho } from "../server/server.fixture.ts";
import { createServiceTransport, type ServiceTransportOptions } from "./transport.ts";

let echo: EchoServer;
beforeAll(async () => {
  echo = await startEcho({ say: (_request, context) => ({ text: principalOf(context).id }) });
});
afterAll(() => echo.server.close(0));

async function failure(action: Promise<unknown>): Promise<ConnectError> {
  return ConnectError.from(
    await action.then(
      () => undefined,
      (error: unknown) => error,
    ),
  );
}

const ways: Omit<ServiceTransportOptions, "baseUrl">[] = [
  { protocol: "connect", httpVersion: "2" },
  { protocol: "connect", httpVersion: "1.1" },
  { protocol: "grpc", httpVersion: "2" },
];

describe.each(ways)("a service transport with $protocol over HTTP/$httpVersion", (way) => {
  test("sends its token, and the handler knows who calls", async () => {
    const transport = createServiceTransport({ baseUrl: echo.url, token: "agent-token", ...way });
    await expect(createClient(Echo, transport).say({})).resolves.toMatchObject({ text: "agent-1" });
    transport.close();
  });

  test("without a token there is no principal", async () => {
    const transport = createServiceTransport({ baseUrl: echo.url, ...way });
    expect((await failure(createClient(Echo, transport).say({}))).code).toBe(Code.Unauthenticated);
    transport.close();
  });

  test("reconnects by itself after the server was unavailable", async () => {
    const first = await startEcho();
    const transport = createServiceTransport({ baseUrl: first.url, token: "agent-token", ...way });
    const client = createClient(Echo, transport);
    await client.say({});
    await first.server.close(0);
    await expect(client.say({})).rejects.toThrow(ConnectError);
    const second = await startEcho({}, { port: first.server.port });
    await expect(client.say({ text: "back" })).resolves.toMatchObject({ text: "back" });
    transport.close();
    await second.server.close(0);
  });
});

test("a stream that cannot be opened ends nothing before it is read, and then says why", async () => {
  const [port = 0] = await freePorts(1);
  const transport = createServiceTransport({ baseUrl: `http://127.0.0.1:${port}`, protocol: "grpc" });
  const unhandled: unknown[] = [];
  const onUnhandled = (error: unknown): void => void unhandled.push(error);
  process.on("unhandledRejection", onUnhandled);
  const messages = createClient(Echo, transport).down({ text: "x" })[Symbol.asyncIterator]();
  await expect(transport.connect()).rejects.toThrow(/ECONNREFUSED/);
  await setTimeout(50);
  process.off("unhandledRejection", onUnhandled);
  expect(unhandled).toEqual([]);
  await expect(messages.next()).rejects.toThrow(/ECONNREFUSED/);
  transport.close();
});

test("there is no gRPC over HTTP/1.1", () => {
  expect(() => createServiceTransport({ baseUrl: echo.url, protocol: "grpc", httpVersion: "1.1" })).toThrow(TypeError);
});

describe("in memory", () => {
  const routes = (principal?: (typeof people)[string]) =>
    createClient(
      Echo,
      inMemoryTransport(
        (router) =>
          router.service(Echo, {
            say: (request, context) => {
              if (request.text === "boom") throw new Error("password is hunter2");
              return { text: principalOf(context).id, words: [callOf(context.values).requestId] };
            },
            async *down(request) {
              yield request;
            },
          }),
        { ...(principal && { principal }), newRequestId: () => "the-id" },
      ),
    );

  test("a call has its principal and request id", async () => {
    const client = routes({ id: "svc", kind: "service", roles: [Role.AGENT], name: "s" });
    await expect(client.say({})).resolves.toMatchObject({ text: "svc", words: ["the-id"] });
  });

  test("a call without principal, without the role, or that no one may make is refused", async () => {
    const agent = people["agent-token"];
    expect((await failure(routes().say({}))).code).toBe(Code.Unauthenticated);
    expect(faultDetail(await failure(routes(agent).admin({})))?.reason).toBe(ErrorReason.ROLE_REQUIRED);
    expect(faultDetail(await failure(routes(agent).forgotten({})))?.reason).toBe(ErrorReason.ROLE_REQUIRED);
  });

  test("the same rules hold as over a socket: validation, unexpected errors, RPCs that do not exist", async () => {
    const client = routes(people["agent-token"]);
    expect(faultDetail(await failure(client.say({ maxBytes: -1 })))?.metadata.field).toBe("maxBytes");
    const error = await failure(client.say({ text: "boom" }));
    expect(error).toMatchObject({ code: Code.Internal, rawMessage: "internal error; request id the-id" });
    expect((await failure(client.up((async function* () {})()))).code).toBe(Code.Unimplemented);
  });
});
