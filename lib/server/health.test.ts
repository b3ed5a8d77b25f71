import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/ts/grpc/health/v1/health_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { faultDetail } from "../fault/fault.ts";
import { Echo } from "./echo.fixture.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";
import { transportFor } from "./transports.fixture.ts";

let echo: EchoServer;
let isReady: boolean;
beforeEach(async () => {
  isReady = true;
  echo = await startEcho({}, { ready: () => isReady });
});
afterEach(() => echo.server.close(0));

const health = () => createClient(Health, transportFor(["grpc", "2", "binary"], echo.url, ""));

test("checks the server and each service without a token", async () => {
  expect(await health().check({})).toMatchObject({ status: Status.SERVING });
  expect(await health().check({ service: "reeve.test.v1.Echo" })).toMatchObject({ status: Status.SERVING });
});

test("knows no service that is not served", async () => {
  const error = await health()
    .check({ service: "x.Y" })
    .catch((cause: unknown) => ConnectError.from(cause));
  expect(error).toMatchObject({ code: Code.NotFound });
});

test("lists all services", async () => {
  echo.server.health.set("reeve.test.v1.Echo", Status.NOT_SERVING);
  const { statuses } = await health().list({});
  expect(Object.entries(statuses).map(([name, { status }]) => [name, status])).toEqual([
    ["", Status.SERVING],
    ["reeve.test.v1.Echo", Status.NOT_SERVING],
  ]);
});

test("watches a service from unknown through its changes, without repeats", async () => {
  const { health: state } = echo.server;
  const watch = health().watch({ service: "later" })[Symbol.asyncIterator]();
  const next = async (): Promise<unknown> => ((await watch.next()) as { value: { status: unknown } }).value.status;
  expect(await next()).toBe(Status.SERVICE_UNKNOWN);
  state.set("later", Status.NOT_SERVING);
  expect(await next()).toBe(Status.NOT_SERVING);
  state.set("later", Status.NOT_SERVING);
  state.set("later", Status.SERVING);
  expect(await next()).toBe(Status.SERVING);
});

test("while it is not ready, health and /healthz say so and calls are refused", async () => {
  const client = createClient(Echo, transportFor(["connect", "2", "json"], echo.url));
  isReady = false;
  expect(await health().check({})).toMatchObject({ status: Status.NOT_SERVING });
  const answer = await fetch(`${echo.url}/healthz`);
  expect([answer.status, await answer.json()]).toEqual([503, { status: "NOT_SERVING" }]);
  const error = await client.say({}).catch((cause: unknown) => ConnectError.from(cause));
  expect(error).toMatchObject({ code: Code.Unavailable });
  expect(faultDetail(error)?.reason).toBe(ErrorReason.NOT_READY);
  isReady = true;
  await expect(client.say({ text: "x" })).resolves.toMatchObject({ text: "x" });
  expect((await fetch(`${echo.url}/healthz`)).status).toBe(200);
});

test("a watcher sees the server become ready", async () => {
  isReady = false;
  const watch = health().watch({})[Symbol.asyncIterator]();
  expect(await watch.next()).toMatchObject({ value: { status: Status.NOT_SERVING } });
  isReady = true;
  expect(await watch.next()).toMatchObject({ value: { status: Status.SERVING } });
});

test("an unavailable dependency shows in health, and neither in readiness nor in liveness", async () => {
  await echo.server.close(0);
  let unavailable: string[] = [];
  echo = await startEcho({}, { ready: () => isReady, unavailable: () => unavailable });
  const plain = async (path: string): Promise<[number, unknown]> => {
    const answer = await fetch(echo.url + path);
    return [answer.status, await answer.json()];
  };
  const say = () => createClient(Echo, transportFor(["grpc", "2", "binary"], echo.url)).say({ text: "a" });
  expect(await plain("/healthz")).toEqual([200, { status: "SERVING" }]);
  unavailable = ["policy"];
  expect(await plain("/healthz")).toEqual([503, { status: "NOT_SERVING", unavailable: ["policy"] }]);
  expect(await health().check({})).toMatchObject({ status: Status.NOT_SERVING });
  expect(await plain("/readyz")).toEqual([200, { status: "SERVING" }]);
  expect(await say()).toMatchObject({ text: "a" });
  isReady = false;
  expect(await plain("/readyz")).toEqual([503, { status: "NOT_SERVING" }]);
  expect(await plain("/livez")).toEqual([200, { status: "SERVING" }]);
});
