import { setTimeout as sleep } from "node:timers/promises";
import { Code, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTcpProxy } from "../../testkit/tcp-proxy.ts";
import type { Authority } from "../identity/authority.ts";
import { service, testAuthority, testMaterial } from "../identity/testdata/certificates.ts";
import { staticTls } from "../identity/tls-source.ts";
import { Echo } from "../server/echo.fixture.ts";
import { type EchoServer, startEcho } from "../server/server.fixture.ts";
import { createServiceTransport } from "./transport.ts";

let authority: Authority;
let echo: EchoServer;
/** Another one, which does answer. */
let answering: EchoServer;

beforeAll(async () => {
  authority = await testAuthority();
  const tls = staticTls(await testMaterial(authority, service("registry")));
  const never = async () => {
    await new Promise(() => undefined);
    return {};
  };
  echo = await startEcho({ say: never }, { tls });
  answering = await startEcho({}, { tls });
});
afterAll(() => Promise.all([echo.server.close(0), answering.server.close(0)]));

// An error event without a listener ends the test run, as it would end the process.
test("a connection that is given up twice, as lost and by its owner, does no harm", async () => {
  await using proxy = await startTcpProxy({ port: echo.server.port });
  const transport = createServiceTransport({
    baseUrl: `https://127.0.0.1:${proxy.port}`,
    token: "agent-token",
    ca: authority.certificate,
    protocol: "grpc",
    pingIntervalMs: 50,
    pingTimeoutMs: 50,
  });
  const call = createClient(Echo, transport).say({});
  setTimeout(() => proxy.blackhole(), 300);
  await expect(call.finally(() => transport.close())).rejects.toThrow("PING timed out");
});

test("connects before there is a call, and says why it cannot", async () => {
  const { url: baseUrl } = answering;
  const transport = createServiceTransport({ baseUrl, token: "agent-token", ca: authority.certificate });
  await transport.connect();
  await createClient(Echo, transport).say({});
  transport.close();
  const stranger = createServiceTransport({ baseUrl });
  await expect(stranger.connect()).rejects.toThrow("the server's certificate is refused");
  stranger.close();
});

test("does not wait for ever for a server that takes the connection and says nothing", async () => {
  await using proxy = await startTcpProxy({ port: echo.server.port });
  proxy.blackhole();
  for (const scheme of ["https", "http"]) {
    const transport = createServiceTransport({
      baseUrl: `${scheme}://127.0.0.1:${proxy.port}`,
      token: "agent-token",
      ...(scheme === "https" && { ca: authority.certificate }),
      connectTimeoutMs: 50,
      pingIntervalMs: 50,
      pingTimeoutMs: 50,
    });
    await expect(createClient(Echo, transport).say({})).rejects.toMatchObject({ code: Code.Unavailable });
    transport.close();
  }
});

// A manager that finds a connection dead while others wait for the next one forgets them.
test("every call ends that waits while a connection is found dead and replaced", async () => {
  await using proxy = await startTcpProxy({ port: answering.server.port });
  const transport = createServiceTransport({
    baseUrl: `https://127.0.0.1:${proxy.port}`,
    token: "agent-token",
    ca: authority.certificate,
    pingIntervalMs: 20,
    pingTimeoutMs: 60,
    connectTimeoutMs: 200,
  });
  const client = createClient(Echo, transport);
  for (let round = 0; round < 5; round++) {
    await client.say({});
    await sleep(40); // idle for long enough to be pinged before the next call
    proxy.blackhole();
    const calls: Promise<unknown>[] = [];
    for (let i = 0; i < 40; i++) {
      calls.push(client.say({}).catch(() => undefined));
      if (i === 20) proxy.restore();
      await sleep(4);
    }
    await Promise.all(calls);
  }
  transport.close();
});
