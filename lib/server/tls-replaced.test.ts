import { createClient } from "@connectrpc/connect";
import { beforeAll, describe, expect, test } from "vitest";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { authenticateByCertificate } from "../auth/authenticate.ts";
import type { Authority } from "../identity/authority.ts";
import { testAuthority, testMaterial } from "../identity/testdata/certificates.ts";
import { createTlsHolder, staticTls, type TlsHolder } from "../identity/tls-source.ts";
import { createServiceTransport } from "../rpc-client/transport.ts";
import { Echo } from "./echo.fixture.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";
import { DAY_MS, DEVICE, only, peerIn, REGISTRY, refusal, refused, tlsWays } from "./tls.fixture.ts";

let authority: Authority;
let foreign: Authority;

beforeAll(async () => {
  [authority, foreign] = await Promise.all([testAuthority(), testAuthority()]);
});

describe.each(tlsWays)("a certificate that is replaced, $protocol on HTTP/$httpVersion", (way) => {
  const start = async (): Promise<{ served: TlsHolder; used: TlsHolder; slow: EchoServer; release: () => void }> => {
    const released = Promise.withResolvers<void>();
    const served = createTlsHolder(await testMaterial(authority, REGISTRY));
    const used = createTlsHolder(await testMaterial(authority, DEVICE));
    const slow = await startEcho(
      {
        say: (_request, context) => ({ text: peerIn(context)?.serial ?? "" }),
        async *down(_request, context) {
          yield { text: peerIn(context)?.serial ?? "" };
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
    const ca = `${authority.certificate}${foreign.certificate}`;
    served.replace({ ...(await testMaterial(foreign, REGISTRY)), ca });
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
