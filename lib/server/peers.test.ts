import { createClient } from "@connectrpc/connect";
import { afterEach, beforeAll, describe, expect, test } from "vitest";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { authenticateByCertificate, firstThatKnows } from "../auth/authenticate.ts";
import type { Authority } from "../identity/authority.ts";
import { testAuthority, testMaterial } from "../identity/testdata/certificates.ts";
import { createTlsHolder, staticTls, type TlsHolder, type TlsMaterial } from "../identity/tls-source.ts";
import { createServiceTransport, type ServiceTransport } from "../rpc-client/transport.ts";
import { Echo } from "./echo.fixture.ts";
import { type EchoServer, people, startEcho } from "./server.fixture.ts";
import { DEVICE, only, REGISTRY, refusal, refused, tlsWays } from "./tls.fixture.ts";

let authority: Authority;
let other: Authority;
let both: string;
beforeAll(async () => {
  [authority, other] = await Promise.all([testAuthority(), testAuthority()]);
  both = `${authority.certificate}${other.certificate}`;
});

let echo: EchoServer;
let served: TlsHolder;
const open: ServiceTransport[] = [];
afterEach(async () => {
  for (const transport of open.splice(0)) transport.close();
  await echo.server.close(0);
});

/** A server whose `down` says one thing and then nothing until it is cut off. */
async function start(): Promise<void> {
  served = createTlsHolder({ ...(await testMaterial(authority, REGISTRY)), ca: both });
  echo = await startEcho(
    {
      async *down(_request, { signal }) {
        yield { text: "first" };
        await new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason as Error)));
      },
    },
    {
      tls: served,
      access: () => only(Role.DEVICE, Role.AGENT),
      authenticate: firstThatKnows(
        authenticateByCertificate({ trustDomain: "reeve" }),
        (authorization) => people[authorization?.replace("Bearer ", "") ?? ""],
      ),
    },
  );
}

describe.each(tlsWays)("$protocol on HTTP/$httpVersion", (way) => {
  const client = (material: TlsMaterial | undefined) => {
    const trust =
      material === undefined
        ? { ca: authority.certificate, token: "agent-token" }
        : { tls: staticTls({ ...material, ca: both }) };
    const transport = createServiceTransport({ baseUrl: echo.url, ...way, ...trust, serverName: REGISTRY });
    open.push(transport);
    return createClient(Echo, transport);
  };
  /** Opens a stream; `end` resolves when it is over, and `isOver` says whether it is. */
  const stream = async (material: TlsMaterial | undefined) => {
    const items = client(material).down({})[Symbol.asyncIterator]();
    expect(await items.next()).toMatchObject({ value: { text: "first" } });
    const seen = { isOver: false, end: Promise.resolve() };
    const over = () => {
      seen.isOver = true;
    };
    seen.end = items.next().then(over, over);
    return seen;
  };

  test("a stream ends with the certificate that let it in, and others go on", async () => {
    await start();
    const lasting = await stream(await testMaterial(authority, DEVICE));
    const ofToken = await stream(undefined);
    const short = await testMaterial(authority, DEVICE, { ttlMs: 2500 });
    const brief = await stream(short);
    await brief.end;
    expect(await refusal(client(short).say({}))).toEqual(refused("expired"));
    expect([lasting.isOver, ofToken.isOver]).toEqual([false, false]);
  });

  test("streams end whose authority is not trusted any more, and no others", async () => {
    await start();
    const foreign = await testMaterial(other, DEVICE);
    const [staying, leaving, ofToken] = [
      await stream(await testMaterial(authority, DEVICE)),
      await stream(foreign),
      await stream(undefined),
    ];
    served.replace(await testMaterial(authority, REGISTRY));
    await leaving.end;
    expect(await refusal(client(foreign).say({}))).toEqual(refused("foreign"));
    expect([staying.isOver, ofToken.isOver]).toEqual([false, false]);
  });
});
