import { once } from "node:events";
import { connect as connectH2 } from "node:http2";
import { connect } from "node:net";
import { expect, test } from "vitest";
import { startEcho } from "./server.fixture.ts";

const HELLO = Buffer.concat([
  Buffer.from("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
  Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0]), // empty SETTINGS
]);

test("cuts off a peer that does not answer pings", async () => {
  const { server } = await startEcho({}, { limits: { pingIntervalMs: 30, pingTimeoutMs: 30 } });
  const silent = connect(server.port, "127.0.0.1");
  silent.write(HELLO);
  await once(silent.resume(), "close");
  await server.close(0);
});

test("keeps a peer that answers pings, for as long as it has a stream", async () => {
  const released = Promise.withResolvers<void>();
  const echo = await startEcho(
    { say: async (request) => released.promise.then(() => request) },
    { limits: { pingIntervalMs: 10, pingTimeoutMs: 5_000, idleSessionMs: 1 } },
  );
  const session = connectH2(echo.url);
  const headers = { ":path": "/reeve.test.v1.Echo/Say", authorization: "Bearer agent-token" };
  const stream = session.request({ ":method": "POST", "content-type": "application/proto", ...headers }).end();
  for (let pings = 0; pings < 3; pings++) await once(session, "ping");
  released.resolve();
  const [answer] = (await once(stream, "response")) as [Record<string, unknown>];
  expect(answer[":status"]).toBe(200);
  session.destroy();
  await echo.server.close(0);
});

test("closes a connection that has had no stream for long", async () => {
  const { server, url } = await startEcho({}, { limits: { pingIntervalMs: 20, idleSessionMs: 10 } });
  const idle = connectH2(url);
  const [code] = (await once(idle, "goaway")) as [number];
  expect(code).toBe(0);
  await once(idle, "close");
  await server.close(0);
});
