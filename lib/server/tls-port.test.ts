import { once } from "node:events";
import { connect as connectH2, type IncomingHttpHeaders } from "node:http2";
import * as https from "node:https";
import { connect as connectTcp, type Socket } from "node:net";
import { type ConnectionOptions, connect, type TLSSocket } from "node:tls";
import { create, fromBinary, toBinary } from "@bufbuild/protobuf";
import { createClient } from "@connectrpc/connect";
import { Client, credentials } from "@grpc/grpc-js";
import { afterEach, beforeAll, expect, test } from "vitest";
import { Health, HealthCheckResponse_ServingStatus as Status } from "../../gen/ts/grpc/health/v1/health_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { authenticateByCertificate } from "../auth/authenticate.ts";
import type { Authority } from "../identity/authority.ts";
import { service, testAuthority, testMaterial } from "../identity/testdata/certificates.ts";
import { createTlsHolder, type TlsHolder, type TlsMaterial } from "../identity/tls-source.ts";
import { createServiceTransport } from "../rpc-client/transport.ts";
import { Echo, EchoMessageSchema } from "./echo.fixture.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";
import type { ServerOptions } from "./server.ts";

const REGISTRY = service("registry");

let authority: Authority;
let mine: TlsMaterial;
let expired: TlsMaterial;
beforeAll(async () => {
  authority = await testAuthority();
  mine = await testMaterial(authority, REGISTRY);
  expired = await testMaterial(authority, REGISTRY, { now: Date.now() - 24 * 3_600_000 });
});

let echo: EchoServer | undefined;
let held: TlsHolder;
afterEach(() => echo?.server.close(0));

async function start(
  options: Partial<ServerOptions> = {},
  impl: Parameters<typeof startEcho>[0] = {},
): Promise<EchoServer> {
  held = createTlsHolder(await testMaterial(authority, REGISTRY));
  echo = await startEcho(impl, {
    tls: held,
    access: () => ({ public: false, roles: [Role.SERVICE] }),
    authenticate: authenticateByCertificate({ trustDomain: "reeve" }),
    ...options,
  });
  return echo;
}

/** As curl would, with HTTP/1.1. */
async function get(path: string, options: https.RequestOptions = {}): Promise<{ status: number; body: string }> {
  const request = https.get(`${echo?.url}${path}`, { ca: mine.ca, agent: false, ...options });
  const [response] = (await once(request, "response")) as [import("node:http").IncomingMessage];
  const pieces: Buffer[] = await response.toArray();
  return { status: response.statusCode ?? 0, body: Buffer.concat(pieces).toString() };
}

async function dial(port: number, options: ConnectionOptions = {}): Promise<TLSSocket> {
  const socket = connect({ host: "127.0.0.1", port, ca: mine.ca, ...options });
  await once(socket, "secureConnect");
  return socket;
}

/** Resolves when the connection is gone, however it goes. */
function gone(socket: Socket): Promise<void> {
  return new Promise((resolve) =>
    socket
      .on("error", () => undefined)
      .once("close", () => resolve())
      .resume(),
  );
}

test("listens beyond loopback without asking, because nothing is in cleartext", async () => {
  const { server } = await start({ host: "0.0.0.0" });
  expect(server.url).toBe(`https://0.0.0.0:${server.port}`);
});

test("serves plain HTTP/1.1 to a client without a certificate", async () => {
  await start();
  expect(await get("/healthz")).toMatchObject({ status: 200, body: '{"status":"SERVING"}' });
  expect((await get("/metrics")).body).toContain("reeve_rpc_total");
});

test("plain paths know the certificate, and refuse an invalid one with its reason", async () => {
  await start({
    fallback({ path, principal }, response) {
      if (path !== "/who") return false;
      response.json(200, principal?.id ?? "nobody");
      return true;
    },
  });
  expect(await get("/who")).toMatchObject({ status: 200, body: '"nobody"' });
  expect(await get("/who", mine)).toMatchObject({ status: 200, body: '"service/registry"' });
  const { status, body } = await get("/who", { ...expired, ca: mine.ca });
  expect(status).toBe(401);
  expect(JSON.parse(body)).toMatchObject({ reason: "identity_refused", metadata: { why: "expired" } });
  expect((await get("/healthz", { ...expired, ca: mine.ca })).status).toBe(200);
});

test("plain paths refuse an invalid certificate, also where only tokens are known", async () => {
  await start({ authenticate: () => undefined, fallback: () => true });
  const { status, body } = await get("/who", { ...expired, ca: mine.ca });
  expect([status, JSON.parse(body)]).toMatchObject([401, { metadata: { why: "expired" } }]);
});

test("serves a gRPC client of another library, with its certificate", async () => {
  const { server } = await start();
  const [ca, key, cert] = [mine.ca, mine.key, mine.cert].map((pem) => Buffer.from(pem));
  const client = new Client(`localhost:${server.port}`, credentials.createSsl(ca, key, cert));
  const { text } = await new Promise<{ text: string }>((resolve, reject) => {
    client.makeUnaryRequest(
      "/reeve.test.v1.Echo/Say",
      (text: string) => Buffer.from(toBinary(EchoMessageSchema, create(EchoMessageSchema, { text }))),
      (bytes: Buffer) => fromBinary(EchoMessageSchema, bytes),
      "hello",
      (error, answer) => (error === null && answer !== undefined ? resolve(answer) : reject(error)),
    );
  });
  expect(text).toBe("hello");
  client.close();
});

test("health needs no certificate", async () => {
  const { url } = await start();
  const transport = createServiceTransport({ baseUrl: url, ca: mine.ca, protocol: "grpc" });
  await expect(createClient(Health, transport).check({})).resolves.toMatchObject({ status: Status.SERVING });
  transport.close();
});

test("speaks HTTP/1.1 with a client that names no protocol, and nothing with one that names others", async () => {
  const { server } = await start();
  const socket = await dial(server.port);
  expect(socket.alpnProtocol).toBe(false);
  socket.write("GET /healthz HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
  const pieces: Buffer[] = await socket.toArray();
  expect(Buffer.concat(pieces).toString()).toContain("200 OK");
  await expect(dial(server.port, { ALPNProtocols: ["smtp"] })).rejects.toThrow("no application protocol");
});

test("does not speak TLS 1.2, nor cleartext", async () => {
  const { server } = await start();
  await expect(dial(server.port, { maxVersion: "TLSv1.2" })).rejects.toThrow("protocol version");
  const clear = connectTcp(server.port, "127.0.0.1");
  clear.write("GET /healthz HTTP/1.1\r\nhost: x\r\n\r\n");
  await gone(clear);
  expect((await get("/healthz")).status).toBe(200);
});

test("a resumed session is the peer that it was, until the server's authorities change", async () => {
  const { server } = await start({
    fallback({ principal }, response) {
      response.json(200, principal?.id ?? "nobody");
      return true;
    },
  });
  const ask = async (socket: TLSSocket): Promise<string> => {
    socket.write("GET /who HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n");
    const pieces: Buffer[] = await socket.toArray();
    return Buffer.concat(pieces).toString();
  };
  const first = await dial(server.port, mine);
  const [session] = (await once(first, "session")) as [Buffer];
  first.destroy();
  const resumed = await dial(server.port, { ...mine, session });
  expect(resumed.isSessionReused()).toBe(true);
  expect(await ask(resumed)).toContain("service/registry");
  const other = await testAuthority();
  held.replace({ ...(await testMaterial(authority, REGISTRY)), ca: other.certificate });
  const again = await dial(server.port, { ...mine, session });
  expect(again.isSessionReused()).toBe(false);
  expect(await ask(again)).toContain('"why":"foreign"');
});

test("serves all of many that dial at once, of whom some give up", async () => {
  const { server } = await start();
  const begin = () => connect({ host: "127.0.0.1", port: server.port, ca: mine.ca }).on("error", () => undefined);
  const all = Array.from({ length: 100 }, begin);
  const stay = all.filter((_, at) => at % 2 === 0);
  await once(all[99] as TLSSocket, "connect");
  for (const socket of all) if (!stay.includes(socket)) socket.destroy();
  for (const socket of stay) if (!socket.authorized) await once(socket, "secureConnect");
  const answers = stay.map(async (socket) => {
    socket.write("GET /healthz HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
    return String((await once(socket, "data"))[0]).split("\r\n")[0];
  });
  expect(await Promise.all(answers)).toEqual(stay.map(() => "HTTP/1.1 200 OK"));
});

test("closes a connection that does not shake hands, or does not finish its headers", async () => {
  const { server } = await start({ limits: { sniffTimeoutMs: 50, headersTimeoutMs: 50 } });
  await gone(connectTcp(server.port, "127.0.0.1"));
  const slow = await dial(server.port);
  slow.write("GET /healthz HTTP/1.1\r\nhost:");
  await gone(slow);
});

test("closes a connection for each one beyond the limit, but none with a certificate", async () => {
  const { server } = await start({ limits: { maxConnections: 1, sniffTimeoutMs: 120_000 } });
  const first = await dial(server.port);
  const firstGone = gone(first);
  const second = await dial(server.port, mine);
  await firstGone;
  second.write("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n");
  await once(second, "data");
  await gone(connectTcp(server.port, "127.0.0.1"));
  second.write("GET /healthz HTTP/1.1\r\nhost: a\r\n\r\n");
  await once(second, "data");
  second.destroy();
});

test("closes an HTTP/2 connection at once when its peer has hung up", async () => {
  const { server } = await start({ limits: { pingIntervalMs: 600_000 } });
  const peer = await dial(server.port, { ALPNProtocols: ["h2"] });
  peer.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  peer.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])); // empty SETTINGS
  await once(peer, "data");
  peer.end();
  await gone(peer);
});

test("cuts off an HTTP/2 peer that does not answer pings", async () => {
  const { server } = await start({ limits: { pingIntervalMs: 30, pingTimeoutMs: 30 } });
  const silent = await dial(server.port, { ALPNProtocols: ["h2"] });
  silent.write("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n");
  silent.write(Buffer.from([0, 0, 0, 4, 0, 0, 0, 0, 0])); // empty SETTINGS
  await gone(silent);
});

test("a drain closes who is idle or still shaking hands, and lets calls in flight finish", async () => {
  const entered = Promise.withResolvers<void>();
  const released = Promise.withResolvers<void>();
  const { server, url } = await start(
    { limits: { sniffTimeoutMs: 120_000 } },
    {
      async say(request) {
        entered.resolve();
        await released.promise;
        return request;
      },
    },
  );
  const transport = createServiceTransport({ baseUrl: url, tls: held });
  const answer = createClient(Echo, transport).say({ text: "patience" });
  await entered.promise;
  const idleH2 = connectH2(url, { ca: mine.ca });
  await once(idleH2, "connect");
  const idle = await dial(server.port);
  const undecided = connectTcp(server.port, "127.0.0.1");
  await once(undecided, "connect");
  const left = Promise.all([gone(idle), gone(undecided), once(idleH2, "close")]);
  const closed = server.close(60_000);
  await left;
  released.resolve();
  await expect(answer).resolves.toMatchObject({ text: "patience" });
  await closed;
  transport.close();
});

test("a drain that is over cuts off what ignores it", async () => {
  const entered = Promise.withResolvers<void>();
  const never = () => new Promise<never>(() => entered.resolve());
  const { server, url } = await start({}, { say: never });
  const session = connectH2(url, { ca: mine.ca, cert: mine.cert, key: mine.key });
  const headers: IncomingHttpHeaders = { ":method": "POST", ":path": "/reeve.test.v1.Echo/Say" };
  const stream = session.request({ ...headers, "content-type": "application/proto" }).on("error", () => undefined);
  stream.end();
  await entered.promise;
  const cut = once(session, "close");
  await server.close(0);
  await cut;
});
