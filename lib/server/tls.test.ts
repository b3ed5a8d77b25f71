import { Code, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { authenticateByCertificate, firstThatKnows } from "../auth/authenticate.ts";
import { identityRefused } from "../auth/peer.ts";
import type { Authority } from "../identity/authority.ts";
import { formatIdentity, isSameIdentity } from "../identity/spiffe.ts";
import { oddMaterial, testAuthority, testMaterial } from "../identity/testdata/certificates.ts";
import { staticTls, type TlsMaterial } from "../identity/tls-source.ts";
import { createServiceTransport, type ServiceTransportOptions } from "../rpc-client/transport.ts";
import type { AccessLookup } from "./access.ts";
import { principalOf } from "./context.ts";
import { Echo } from "./echo.fixture.ts";
import { type EchoServer, people, startEcho } from "./server.fixture.ts";
import {
  DAY_MS,
  DEVICE,
  DEVICE_ID,
  NO_PRINCIPAL,
  only,
  POLICY,
  peerIn,
  REGISTRY,
  REVOKED,
  ROLE,
  refusal,
  refused,
  tlsWays,
} from "./tls.fixture.ts";

/** `say` is for services, `admin` for devices, `up` for anybody. */
const access: AccessLookup = ({ localName }) =>
  ({ say: only(Role.SERVICE), admin: only(Role.DEVICE), down: only(Role.AGENT), up: { public: true, roles: [] } })[
    localName
  ];

let authority: Authority;
let foreign: Authority;
let echo: EchoServer;
let shown: Record<string, TlsMaterial>;

beforeAll(async () => {
  [authority, foreign] = await Promise.all([testAuthority(), testAuthority()]);
  const elsewhere = { ...REGISTRY, trustDomain: "elsewhere" };
  const uri = (value: string) => ({ type: "url" as const, value });
  shown = {
    "a service": await testMaterial(authority, REGISTRY),
    "a device": await testMaterial(authority, DEVICE),
    "a revoked device": await testMaterial(authority, REVOKED),
    "another service": await testMaterial(authority, POLICY),
    "an expired one": await testMaterial(authority, REGISTRY, { now: Date.now() - DAY_MS }),
    "one of tomorrow": await testMaterial(authority, REGISTRY, { now: Date.now() + DAY_MS }),
    "a foreign one": await testMaterial(foreign, REGISTRY, { trusted: authority }),
    "a foreign one that expired": await testMaterial(foreign, REGISTRY, {
      trusted: authority,
      now: Date.now() - DAY_MS,
    }),
    "a foreign one of tomorrow": await testMaterial(foreign, REGISTRY, {
      trusted: authority,
      now: Date.now() + DAY_MS,
    }),
    "a foreign one for servers only": await oddMaterial(foreign, [uri(formatIdentity(REGISTRY))], "server"),
    "one of another trust domain": await testMaterial(authority, elsewhere),
    "one without a SPIFFE id": await oddMaterial(authority, [{ type: "dns", value: "registry" }]),
    "one with two SPIFFE ids": await oddMaterial(authority, [REGISTRY, POLICY].map(formatIdentity).map(uri)),
    "one for servers only": await oddMaterial(authority, [uri(formatIdentity(REGISTRY))], "server"),
  };
  echo = await startEcho(
    {
      say: (_request, context) => ({ text: principalOf(context).id, words: [peerIn(context)?.fingerprint ?? ""] }),
      admin: (_request, context) => ({ text: principalOf(context).id }),
      async up(requests, context) {
        for await (const _ of requests);
        const { problem = "none", identity, claimed } = peerIn(context) ?? {};
        return { text: problem, words: [identity === undefined ? "nobody" : formatIdentity(identity), claimed ?? ""] };
      },
    },
    {
      tls: staticTls(await testMaterial(authority, REGISTRY)),
      access,
      authenticate: firstThatKnows(
        authenticateByCertificate({
          trustDomain: "reeve",
          acceptServices: ["registry"],
          async check({ identity }) {
            if (isSameIdentity(identity, REVOKED)) throw identityRefused("revoked", identity);
          },
        }),
        (authorization) => people[authorization?.replace("Bearer ", "") ?? ""],
      ),
    },
  );
});
afterAll(() => echo.server.close(0));

describe.each(tlsWays)("over TLS, $protocol on HTTP/$httpVersion", (way) => {
  const as = (who: string | undefined, options: Partial<ServiceTransportOptions> = {}) => {
    const material = who === undefined ? undefined : shown[who];
    const trust = material === undefined ? { ca: authority.certificate } : { tls: staticTls(material) };
    const transport = createServiceTransport({ baseUrl: echo.url, ...way, ...trust, ...options });
    return { ...createClient(Echo, transport), close: transport.close };
  };

  test("a service's certificate makes it the service", async () => {
    const client = as("a service", { serverName: REGISTRY });
    const { text, words } = await client.say({});
    expect(text).toBe("service/registry");
    expect(words[0]).toMatch(/^[0-9a-f]{64}$/);
    client.close();
  });

  test("a device's certificate makes it the device, and no service", async () => {
    const client = as("a device");
    await expect(client.admin({})).resolves.toMatchObject({ text: DEVICE_ID });
    expect(await refusal(client.say({}))).toEqual(ROLE);
    client.close();
  });

  test("a service is no device", async () => {
    const client = as("a service");
    expect(await refusal(client.admin({}))).toEqual(ROLE);
    client.close();
  });

  test.each([
    ["another service", "role"],
    ["a revoked device", "revoked"],
    ["an expired one", "expired"],
    ["one of tomorrow", "not_yet"],
    ["a foreign one", "foreign"],
    ["a foreign one that expired", "foreign"],
    ["a foreign one of tomorrow", "foreign"],
    ["a foreign one for servers only", "foreign"],
    ["one of another trust domain", "foreign"],
    ["one without a SPIFFE id", "malformed"],
    ["one with two SPIFFE ids", "malformed"],
    ["one for servers only", "malformed"],
  ])("%s is refused as %s, with a good token beside it as well", async (who, why) => {
    const client = as(who);
    expect(await refusal(client.say({}))).toEqual(refused(why));
    client.close();
    const withToken = as(who, { token: "agent-token" });
    const stream = withToken.down({})[Symbol.asyncIterator]();
    expect(await refusal(stream.next())).toEqual(refused(why));
    withToken.close();
  });

  test("a certificate and a token are not both at once", async () => {
    const client = as("a service", { token: "agent-token" });
    await expect(client.say({})).resolves.toMatchObject({ text: "service/registry" });
    expect(await refusal(client.down({})[Symbol.asyncIterator]().next())).toEqual(ROLE);
    client.close();
  });

  test("without a certificate a token counts, and without either there is no principal", async () => {
    const withToken = as(undefined, { token: "agent-token" });
    await expect(Array.fromAsync(withToken.down({ words: ["hello"] }))).resolves.toMatchObject([{ text: "hello" }]);
    withToken.close();
    const client = as(undefined);
    expect(await refusal(client.say({}))).toEqual(NO_PRINCIPAL);
    client.close();
  });

  test.runIf(way.httpVersion === "2")(
    "a public RPC is open to a peer with a problem, and its handler sees that, and no principal",
    async () => {
      const client = as("an expired one");
      const none = (async function* () {})();
      const words = ["nobody", formatIdentity(REGISTRY)];
      await expect(client.up(none)).resolves.toMatchObject({ text: "expired", words });
      client.close();
    },
  );
});

test("a bad certificate is refused before a token is looked at, also where only tokens are known", async () => {
  const tokensOnly = await startEcho(
    {},
    { tls: staticTls(await testMaterial(authority, REGISTRY)), access: () => only(Role.AGENT) },
  );
  const call = async (who: string): Promise<unknown> => {
    const tls = staticTls(shown[who] as TlsMaterial);
    const transport = createServiceTransport({ baseUrl: tokensOnly.url, tls, token: "agent-token" });
    const end = await refusal(createClient(Echo, transport).say({}));
    transport.close();
    return end;
  };
  expect(await call("an expired one")).toEqual(refused("expired"));
  expect(await call("a foreign one")).toEqual(refused("foreign"));
  expect(await call("a service")).toEqual({ code: Code.Unknown }); // it was let in
  await tokensOnly.server.close(0);
});
