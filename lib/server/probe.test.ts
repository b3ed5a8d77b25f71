import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { createConnectTransport, createGrpcTransport } from "@connectrpc/connect-node";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/ts/grpc/health/v1/health_pb.ts";
import { ServerReflection } from "../../gen/ts/grpc/reflection/v1/reflection_pb.ts";
import { createLogger } from "../log/log.ts";
import { Echo } from "./echo.fixture.ts";
import { createProbe, type Probe } from "./probe.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";

let echo: EchoServer;
let probe: Probe;
let lines: string[];
beforeEach(async () => {
  lines = [];
  echo = await startEcho();
  const logger = createLogger({ service: "test", destination: { write: (line: string) => void lines.push(line) } });
  const { health, metrics } = echo.server;
  probe = await createProbe({ host: "0.0.0.0", health, metrics, logger });
});
afterEach(async () => {
  await echo.server.close(0);
  await probe.close();
});

const url = (path = ""): string => `http://127.0.0.1:${probe.port}${path}`;

test("reports the health of the main server, to a gRPC probe and to a plain one", async () => {
  const health = createClient(Health, createGrpcTransport({ baseUrl: url() }));
  await expect(health.check({})).resolves.toMatchObject({ status: Status.SERVING });
  await expect(health.check({ service: Echo.typeName })).resolves.toMatchObject({ status: Status.SERVING });
  expect((await fetch(url("/healthz"))).status).toBe(200);
  await echo.server.close(0);
  await expect(health.check({})).resolves.toMatchObject({ status: Status.NOT_SERVING });
  expect((await fetch(url("/healthz"))).status).toBe(503);
});

test("gives the main server's metrics, in which probes do not count", async () => {
  const health = createClient(Health, createGrpcTransport({ baseUrl: url() }));
  await health.check({});
  const text = await (await fetch(url("/metrics"))).text();
  expect(text).toContain("reeve_rpc_total");
  expect(text).not.toContain("grpc.health");
  expect(lines).toEqual([]);
});

test.each(["agent-token", "operator-token"])("serves nothing else, to %s neither", async (token) => {
  const headers = { authorization: `Bearer ${token}` };
  const transport = createConnectTransport({ baseUrl: url(), httpVersion: "1.1" });
  for (const call of [
    () => createClient(Echo, transport).say({ text: "x" }, { headers }),
    () =>
      createClient(ServerReflection, createGrpcTransport({ baseUrl: url() }))
        .serverReflectionInfo((async function* () {})(), { headers })
        [Symbol.asyncIterator]()
        .next(),
  ]) {
    const error = await call().then(
      () => undefined,
      (cause: unknown) => cause,
    );
    expect([Code.Unimplemented, Code.Unauthenticated]).toContain(ConnectError.from(error).code);
  }
  for (const path of ["/", "/tools", "/invoke", "/healthz/", "/metrics/x"])
    expect((await fetch(url(path))).status, path).toBe(404);
});

test("ends a watcher when it closes", async () => {
  const health = createClient(Health, createGrpcTransport({ baseUrl: url() }));
  const watch = health.watch({})[Symbol.asyncIterator]();
  await watch.next();
  const next = watch.next().then(
    ({ done }) => done,
    () => true,
  );
  await probe.close();
  expect(await next).toBe(true);
});
