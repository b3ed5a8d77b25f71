import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startTcpProxy } from "../../test/helpers/tcp-proxy.ts";
import type { Authority } from "../identity/authority.ts";
import { service, testAuthority, testMaterial } from "../identity/testdata/certificates.ts";
import { staticTls } from "../identity/tls-source.ts";
import { createServiceTransport } from "./client.ts";
import { Echo } from "./echo.fixture.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";

let authority: Authority;
let echo: EchoServer;

beforeAll(async () => {
  authority = await testAuthority();
  const tls = staticTls(await testMaterial(authority, service("registry")));
  const never = async () => {
    await new Promise(() => undefined);
    return {};
  };
  echo = await startEcho({ say: never }, { tls });
});
afterAll(() => echo.server.close(0));

// An error event that nobody hears ends the test run, as it would end the process.
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
