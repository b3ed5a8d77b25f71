import { once } from "node:events";
import { connect } from "node:net";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { describe, expect, test } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/ts/grpc/health/v1/health_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../fault/fault.ts";
import { Echo } from "./echo.fixture.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";
import { transportFor, type Way, ways } from "./transports.fixture.ts";

/** A server whose `say` waits for `release`, whose `down` goes on until it is aborted, and whose `admin` ignores aborts. */
async function startSlow(): Promise<EchoServer & { entered: Promise<void>; release: () => void }> {
  const entered = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const echo = await startEcho({
    async say(request) {
      entered.resolve();
      await released.promise;
      return request;
    },
    async *down(_request, { signal }) {
      yield { text: "first" };
      await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
    },
    admin: () => new Promise(() => entered.resolve()),
  });
  return { ...echo, entered: entered.promise, release: released.resolve };
}

async function failure(action: Promise<unknown>): Promise<ConnectError> {
  return ConnectError.from(
    await action.then(
      () => undefined,
      (error: unknown) => error,
    ),
  );
}

describe.each(ways)("%s over HTTP/%s in %s", (...way: Way) => {
  test("a call in flight finishes, and close waits for it and no longer", async () => {
    const slow = await startSlow();
    const answer = createClient(Echo, transportFor(way, slow.url)).say({ text: "patience" });
    await slow.entered;
    const closed = slow.server.close(60_000);
    slow.release();
    await expect(answer).resolves.toMatchObject({ text: "patience" });
    await closed;
  });

  test("a stream ends after the grace with the reason that the service stops", async () => {
    const slow = await startSlow();
    const stream = createClient(Echo, transportFor(way, slow.url)).down({})[Symbol.asyncIterator]();
    expect(await stream.next()).toMatchObject({ value: { text: "first" } });
    const next = failure(stream.next());
    const closed = slow.server.close(0);
    const error = await next;
    expect(error.code).toBe(Code.Unavailable);
    expect(faultDetail(error)?.reason).toBe(ErrorReason.NOT_READY);
    await closed;
    expect(await slow.logged((line) => line.procedure === "reeve.test.v1.Echo/Down")).toMatchObject({
      code: "unavailable",
      reason: "not_ready",
    });
  });
});

test.each<Way>([
  ["connect", "1.1", "json"],
  ["grpc", "2", "binary"],
])("%s over HTTP/%s in %s: a handler that ignores its signal is cut off", async (...way: Way) => {
  const slow = await startSlow();
  const answer = failure(createClient(Echo, transportFor(way, slow.url, "operator-token")).admin({}));
  await slow.entered;
  await slow.server.close(0);
  expect([Code.Unavailable, Code.Aborted, Code.Canceled, Code.Internal]).toContain((await answer).code);
});

test("no new connection is taken, and a kept-alive one is closed", async () => {
  const echo = await startEcho();
  const idle = connect(echo.server.port, "127.0.0.1");
  idle.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
  await once(idle, "data");
  const gone = once(idle, "close");
  const undecided = connect(echo.server.port, "127.0.0.1");
  await once(undecided, "connect");
  const alsoGone = once(undecided.resume(), "close");
  await echo.server.close(60_000);
  await Promise.all([gone, alsoGone]);
  const late = connect(echo.server.port, "127.0.0.1");
  await expect(once(late, "connect")).rejects.toMatchObject({ code: "ECONNREFUSED" });
});

test("health says NOT_SERVING as soon as the drain begins", async () => {
  const slow = await startSlow();
  const transport = transportFor(["connect", "1.1", "binary"], slow.url);
  const watch = createClient(Health, transport).watch({ service: "" })[Symbol.asyncIterator]();
  expect(await watch.next()).toMatchObject({ value: { status: Status.SERVING } });
  const second = watch.next();
  const first = createClient(Echo, transport).say({ text: "x" });
  await slow.entered;
  const closed = slow.server.close(60_000);
  expect(await second).toMatchObject({ value: { status: Status.NOT_SERVING } });
  expect(await watch.next()).toMatchObject({ done: true });
  expect(slow.server.health.get("reeve.test.v1.Echo")).toBe(Status.NOT_SERVING);
  slow.release();
  await first;
  await closed;
});

test("close can be called twice", async () => {
  const echo = await startEcho();
  await Promise.all([echo.server.close(0), echo.server.close(0)]);
});

test("a deadline aborts the handler's signal and ends the call as deadline_exceeded", async () => {
  const echo = await startEcho({
    say: (_request, { signal }) =>
      new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error))),
  });
  const answer = await fetch(`${echo.url}/reeve.test.v1.Echo/Say`, {
    method: "POST",
    headers: { authorization: "Bearer agent-token", "content-type": "application/json", "connect-timeout-ms": "30" },
    body: "{}",
  });
  expect(await answer.json()).toMatchObject({ code: "deadline_exceeded" });
  expect(await echo.logged((entry) => entry.msg === "rpc")).toMatchObject({ code: "deadline_exceeded" });
  expect(echo.lines.map((entry) => entry.level)).toEqual(["info"]);
  await echo.server.close(0);
});

test("a caller who leaves ends the call as canceled, and nothing is logged as unexpected", async () => {
  const slow = await startSlow();
  for (const way of ways) {
    const aborter = new AbortController();
    const stream = createClient(Echo, transportFor(way, slow.url))
      .down({}, { signal: aborter.signal })
      [Symbol.asyncIterator]();
    await stream.next();
    aborter.abort();
    await failure(stream.next());
    const line = await slow.logged((entry) => entry.msg === "rpc");
    expect(line).toMatchObject({ code: "canceled" });
    expect(slow.lines.splice(0).map((entry) => entry.level)).toEqual(["info"]);
  }
  await slow.server.close(0);
});
