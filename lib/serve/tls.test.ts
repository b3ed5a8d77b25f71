import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Role } from "../../gen/ts/reeve/common/v1/access_pb.ts";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { authenticateByCertificate, firstThatKnows } from "../auth/authenticate.ts";
import { identityRefused } from "../auth/peer.ts";
import { faultDetail } from "../fault/fault.ts";
import type { Authority } from "../identity/authority.ts";
import { formatIdentity, isSameIdentity } from "../identity/spiffe.ts";
import { device, oddMaterial, service, testAuthority, testMaterial } from "../identity/testdata/certificates.ts";
import { createTlsHolder, staticTls, type TlsHolder, type TlsMaterial } from "../identity/tls-source.ts";
import type { AccessLookup } from "./access.ts";
import { createServiceTransport, type ServiceTransportOptions } from "./client.ts";
import type { ExpectedServer } from "./client-tls.ts";
import { peerOf, principalOf } from "./context.ts";
import { Echo } from "./echo.fixture.ts";
import { type EchoServer, people, startEcho } from "./server.fixture.ts";

const REGISTRY = service("registry");
const POLICY = service("policy");
const DEVICE_ID = "dev-0123456789abcdef";
const DEVICE = device(DEVICE_ID);
const REVOKED = device("dev-00000000000000ff");
const DAY_MS = 24 * 3_600_000;

const ways: Pick<ServiceTransportOptions, "protocol" | "httpVersion">[] = [
  { protocol: "connect", httpVersion: "1.1" },
  { protocol: "connect", httpVersion: "2" },
  { protocol: "grpc", httpVersion: "2" },
];

/** `say` is for services, `admin` for devices, `up` for anybody. */
const access: AccessLookup = ({ localName }) =>
  ({ say: only(Role.SERVICE), admin: only(Role.DEVICE), down: only(Role.AGENT), up: { public: true, roles: [] } })[
    localName
  ];

function only(...roles: Role[]): { public: boolean; roles: Role[] } {
  return { public: false, roles };
}

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
    "one of another trust domain": await testMaterial(authority, elsewhere),
    "one without a SPIFFE id": await oddMaterial(authority, [{ type: "dns", value: "registry" }]),
    "one with two SPIFFE ids": await oddMaterial(authority, [REGISTRY, POLICY].map(formatIdentity).map(uri)),
    "one for servers only": await oddMaterial(authority, [uri(formatIdentity(REGISTRY))], "server"),
  };
  echo = await startEcho(
    {
      say: (_request, context) => ({ text: principalOf(context).id, words: [peerOf(context)?.fingerprint ?? ""] }),
      admin: (_request, context) => ({ text: principalOf(context).id }),
      async up(requests, context) {
        for await (const _ of requests);
        return { text: peerOf(context)?.problem ?? "none" };
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

async function refusal(
  action: Promise<unknown>,
): Promise<{ code: Code; reason?: ErrorReason; why?: string | undefined }> {
  const error = ConnectError.from(
    await action.then(
      () => "it was let in",
      (cause: unknown) => cause,
    ),
  );
  const detail = faultDetail(error);
  if (detail === undefined) return { code: error.code };
  return { code: error.code, reason: detail.reason, ...(detail.metadata.why && { why: detail.metadata.why }) };
}

const refused = (why: string) => ({ code: Code.Unauthenticated, reason: ErrorReason.IDENTITY_REFUSED, why });
const ROLE = { code: Code.PermissionDenied, reason: ErrorReason.ROLE_REQUIRED };
const NOBODY = { code: Code.Unauthenticated, reason: ErrorReason.UNAUTHENTICATED };

describe.each(ways)("over TLS, $protocol on HTTP/$httpVersion", (way) => {
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

  test("without a certificate a token counts, and nothing is nobody", async () => {
    const withToken = as(undefined, { token: "agent-token" });
    await expect(Array.fromAsync(withToken.down({ words: ["hello"] }))).resolves.toMatchObject([{ text: "hello" }]);
    withToken.close();
    const client = as(undefined);
    expect(await refusal(client.say({}))).toEqual(NOBODY);
    client.close();
  });

  test.runIf(way.httpVersion === "2")(
    "a public RPC is open to a peer with a problem, and its handler sees it",
    async () => {
      const client = as("an expired one");
      const none = (async function* () {})();
      await expect(client.up(none)).resolves.toMatchObject({ text: "expired" });
      client.close();
    },
  );

  test.each([
    ["another role", POLICY, "role"],
    ["another trust domain", { ...REGISTRY, trustDomain: "elsewhere" }, "foreign"],
    ["a device", DEVICE, "role"],
    ["any device", { kind: "device" as const, trustDomain: "reeve" }, "role"],
  ])("a server that should be %s is refused before it hears anything", async (_what, serverName, why) => {
    const client = as("a service", { serverName });
    expect(await refusal(client.say({}))).toEqual(refused(why));
    client.close();
  });

  test("a server of a foreign authority is refused, with and without an expected name", async () => {
    const tls = staticTls(await testMaterial(authority, REGISTRY, { trusted: foreign }));
    for (const serverName of [undefined, REGISTRY]) {
      const client = as(undefined, { ca: undefined, tls, ...(serverName && { serverName }) });
      expect(await refusal(client.say({}))).toEqual(refused("foreign"));
      client.close();
    }
  });

  test("a server that is gone is no refused identity", async () => {
    const client = as("a service", { baseUrl: "https://127.0.0.1:1" });
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
  expect(await refusal(createClient(Echo, byName).say({}))).toEqual(NOBODY);
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
  expect(await expecting(DEVICE)).toEqual(NOBODY);
  expect(await expecting({ kind: "device", trustDomain: "reeve" })).toEqual(NOBODY);
  expect(await expecting(REVOKED)).toEqual(refused("role"));
  expect(await expecting({ kind: "device", trustDomain: "elsewhere" })).toEqual(refused("foreign"));
  await listening.server.close(0);
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

describe.each(ways)("a certificate that is replaced, $protocol on HTTP/$httpVersion", (way) => {
  const start = async (): Promise<{ served: TlsHolder; used: TlsHolder; slow: EchoServer; release: () => void }> => {
    const released = Promise.withResolvers<void>();
    const served = createTlsHolder(await testMaterial(authority, REGISTRY));
    const used = createTlsHolder(await testMaterial(authority, DEVICE));
    const slow = await startEcho(
      {
        say: (_request, context) => ({ text: peerOf(context)?.serial ?? "" }),
        async *down(_request, context) {
          yield { text: peerOf(context)?.serial ?? "" };
          await released.promise;
          yield { text: "the end" };
        },
      },
      {
        tls: served,
        access: () => only(Role.DEVICE),
        authenticate: authenticateByCertificate({ trustDomain: "reeve" }),
      },
    );
    return { served, used, slow, release: released.resolve };
  };

  test("by a client: the open stream goes on, the next call shows the new one", async () => {
    const { used, slow, release } = await start();
    const transport = createServiceTransport({ baseUrl: slow.url, tls: used, serverName: REGISTRY, ...way });
    const client = createClient(Echo, transport);
    const stream = client.down({})[Symbol.asyncIterator]();
    const { value: first } = await stream.next();
    await expect(client.say({})).resolves.toMatchObject({ text: first?.text });
    used.replace(await testMaterial(authority, DEVICE));
    const { text: after } = await client.say({});
    expect(after).toMatch(/^[0-9a-f]+$/);
    expect(after).not.toBe(first?.text);
    release();
    expect(await stream.next()).toMatchObject({ value: { text: "the end" } });
    await stream.next();
    await expect(client.say({})).resolves.toMatchObject({ text: after }); // not by the stream's old connection
    transport.close();
    await slow.server.close(0);
  });

  test("by a server: the open stream goes on, a new connection gets the new authority", async () => {
    const { served, used, slow, release } = await start();
    const transport = createServiceTransport({ baseUrl: slow.url, tls: used, serverName: REGISTRY, ...way });
    const stream = createClient(Echo, transport).down({})[Symbol.asyncIterator]();
    await stream.next();
    served.replace(await testMaterial(foreign, REGISTRY));
    const late = createServiceTransport({ baseUrl: slow.url, tls: used, serverName: REGISTRY, ...way });
    expect(await refusal(createClient(Echo, late).say({}))).toEqual(refused("foreign"));
    const trusting = createTlsHolder(await testMaterial(foreign, DEVICE));
    const renewed = createServiceTransport({ baseUrl: slow.url, tls: trusting, serverName: REGISTRY, ...way });
    await expect(createClient(Echo, renewed).say({})).resolves.toBeDefined();
    release();
    expect(await stream.next()).toMatchObject({ value: { text: "the end" } });
    for (const open of [transport, late, renewed]) open.close();
    await slow.server.close(0);
  });
});

test("a certificate that expires on an open connection is refused from then on", async () => {
  let now = Date.now();
  const server = await startEcho(
    {},
    {
      tls: staticTls(await testMaterial(authority, REGISTRY)),
      access: () => only(Role.DEVICE),
      authenticate: authenticateByCertificate({ trustDomain: "reeve", now: () => now }),
    },
  );
  const transport = createServiceTransport({
    baseUrl: server.url,
    tls: staticTls(await testMaterial(authority, DEVICE)),
  });
  const client = createClient(Echo, transport);
  await client.say({});
  now += DAY_MS;
  expect(await refusal(client.say({}))).toEqual(refused("expired"));
  transport.close();
  await server.server.close(0);
});

test("a certificate is nothing for a cleartext address", async () => {
  const tls = staticTls(await testMaterial(authority, REGISTRY));
  expect(() => createServiceTransport({ baseUrl: "http://127.0.0.1:1", tls })).toThrow("cleartext");
  expect(() => createServiceTransport({ baseUrl: "http://127.0.0.1:1", serverName: POLICY })).toThrow("cleartext");
});
