import { Code, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import type { Authority } from "../identity/authority.ts";
import { formatIdentity } from "../identity/spiffe.ts";
import { oddMaterial, testAuthority, testMaterial } from "../identity/testdata/certificates.ts";
import { staticTls } from "../identity/tls-source.ts";
import type { ExpectedServer } from "../rpc-client/tls.ts";
import { createServiceTransport, type ServiceTransportOptions } from "../rpc-client/transport.ts";
import { Echo } from "./echo.fixture.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";
import {
  DAY_MS,
  DEVICE,
  NO_PRINCIPAL,
  only,
  POLICY,
  REGISTRY,
  REVOKED,
  refusal,
  refused,
  tlsWays,
} from "./tls.fixture.ts";

let authority: Authority;
let foreign: Authority;
let echo: EchoServer;

beforeAll(async () => {
  [authority, foreign] = await Promise.all([testAuthority(), testAuthority()]);
  echo = await startEcho({}, { tls: staticTls(await testMaterial(authority, REGISTRY)) });
});
afterAll(() => echo.server.close(0));

describe.each(tlsWays)("who the server is, $protocol on HTTP/$httpVersion", (way) => {
  const towards = async (options: Partial<ServiceTransportOptions>) => {
    const tls = staticTls(await testMaterial(authority, REGISTRY));
    const transport = createServiceTransport({ baseUrl: echo.url, ...way, tls, ...options });
    return { ...createClient(Echo, transport), close: transport.close };
  };

  test.each([
    ["another role", POLICY, "role"],
    ["another trust domain", { ...REGISTRY, trustDomain: "elsewhere" }, "foreign"],
    ["a device", DEVICE, "role"],
    ["any device", { kind: "device" as const, trustDomain: "reeve" }, "role"],
  ])("a server that should be %s is refused before anything is sent to it", async (_what, serverName, why) => {
    const client = await towards({ serverName });
    expect(await refusal(client.say({}))).toEqual(refused(why));
    client.close();
  });

  test("a server of a foreign authority is refused, with and without an expected name", async () => {
    const tls = staticTls(await testMaterial(authority, REGISTRY, { trusted: foreign }));
    for (const serverName of [undefined, REGISTRY]) {
      const client = await towards({ tls, ...(serverName && { serverName }) });
      expect(await refusal(client.say({}))).toEqual(refused("foreign"));
      client.close();
    }
  });

  test("a server that is gone is no refused identity", async () => {
    const client = await towards({ baseUrl: "https://127.0.0.1:1" });
    expect(await refusal(client.say({}))).toEqual({ code: Code.Unavailable });
    client.close();
  });
});

test("a server without an expected name must be for the host", async () => {
  const uri = { type: "url" as const, value: formatIdentity(POLICY) };
  const other = await startEcho(
    {},
    { tls: staticTls(await oddMaterial(authority, [uri])), access: () => only(Role.SERVICE) },
  );
  const tls = staticTls(await testMaterial(authority, REGISTRY));
  const byHost = createServiceTransport({ baseUrl: other.url, tls });
  expect(await refusal(createClient(Echo, byHost).say({}))).toEqual(refused("role"));
  const byName = createServiceTransport({ baseUrl: other.url, tls, serverName: POLICY });
  expect(await refusal(createClient(Echo, byName).say({}))).toEqual(NO_PRINCIPAL);
  byHost.close();
  byName.close();
  await other.server.close(0);
});

test("a device that listens may be expected as itself, or as any device of the trust domain", async () => {
  const listening = await startEcho(
    {},
    { tls: staticTls(await testMaterial(authority, DEVICE)), access: () => only(Role.SERVICE) },
  );
  const tls = staticTls(await testMaterial(authority, REGISTRY));
  const expecting = async (serverName: ExpectedServer): Promise<unknown> => {
    const transport = createServiceTransport({ baseUrl: listening.url, tls, serverName });
    const end = await refusal(createClient(Echo, transport).say({}));
    transport.close();
    return end;
  };
  expect(await expecting(DEVICE)).toEqual(NO_PRINCIPAL);
  expect(await expecting({ kind: "device", trustDomain: "reeve" })).toEqual(NO_PRINCIPAL);
  expect(await expecting(REVOKED)).toEqual(refused("role"));
  expect(await expecting({ kind: "device", trustDomain: "elsewhere" })).toEqual(refused("foreign"));
  await listening.server.close(0);
});

test("a server whose certificate expired is refused", async () => {
  const stale = await startEcho(
    {},
    { tls: staticTls(await testMaterial(authority, REGISTRY, { now: Date.now() - DAY_MS })) },
  );
  const transport = createServiceTransport({ baseUrl: stale.url, ca: authority.certificate, serverName: REGISTRY });
  expect(await refusal(createClient(Echo, transport).say({}))).toEqual(refused("expired"));
  transport.close();
  await stale.server.close(0);
});

test("a certificate is nothing for a cleartext address", async () => {
  const tls = staticTls(await testMaterial(authority, REGISTRY));
  expect(() => createServiceTransport({ baseUrl: "http://127.0.0.1:1", tls })).toThrow("cleartext");
  expect(() => createServiceTransport({ baseUrl: "http://127.0.0.1:1", serverName: POLICY })).toThrow("cleartext");
});
