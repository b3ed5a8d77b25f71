import { createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test } from "vitest";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { eventually } from "../../testkit/eventually.ts";
import { authenticateByCertificate } from "../auth/authenticate.ts";
import type { Authority } from "../identity/authority.ts";
import { testAuthority, testMaterial } from "../identity/testdata/certificates.ts";
import { createTlsHolder, staticTls, type TlsHolder } from "../identity/tls-source.ts";
import { createServiceTransport } from "../rpc-client/transport.ts";
import { Echo } from "../server/echo.fixture.ts";
import { startEcho } from "../server/server.fixture.ts";
import { only, POLICY, peerIn, REGISTRY } from "../server/tls.fixture.ts";
import { keepLinked } from "./keep-linked.ts";
import { untilRenewed } from "./until-renewed.ts";

let parts: AsyncDisposableStack;
let authority: Authority;
let shown: TlsHolder;
beforeEach(async () => {
  parts = new AsyncDisposableStack();
  authority = await testAuthority();
  shown = createTlsHolder(await testMaterial(authority, REGISTRY));
});
afterEach(() => parts.disposeAsync());

/** A server whose stream says with which certificate it came, and what it was asked; it answers nothing to the first. */
async function startServer(): Promise<{ url: string; serials: string[] }> {
  const serials: string[] = [];
  const echo = await startEcho(
    {
      async *both(requests, context) {
        const serial = peerIn(context)?.serial ?? "";
        serials.push(serial);
        for await (const { text } of requests) if (serial !== serials[0]) yield { text: `${text} by ${serial}` };
      },
    },
    {
      tls: staticTls(await testMaterial(authority, POLICY)),
      access: () => only(Role.SERVICE),
      authenticate: authenticateByCertificate({ trustDomain: "reeve" }),
    },
  );
  parts.defer(() => echo.server.close(0));
  return { url: echo.url, serials };
}

test("a stream moves to the new certificate at once, and what was not answered is asked again", async () => {
  const { url, serials } = await startServer();
  const transport = createServiceTransport({ baseUrl: url, tls: shown, serverName: POLICY, protocol: "grpc" });
  parts.defer(() => transport.close());
  const client = createClient(Echo, transport);
  const open = untilRenewed<{ text: string }, { text: string }>(
    (requests, signal) => client.both(requests, { signal }),
    shown,
  );
  const answers: string[] = [];
  const link = keepLinked<string, string>({
    async *open(outgoing, signal) {
      const requests = (async function* () {
        for await (const batch of outgoing) for (const text of batch) yield { text };
      })();
      for await (const { text } of open(requests, signal)) yield [text];
    },
    onUp: () => link.send("question"),
    receive: (batch) => void answers.push(...batch),
  });
  parts.defer(() => link.close());
  await eventually(() => expect(serials).toHaveLength(1));
  shown.replace(await testMaterial(authority, REGISTRY));
  await eventually(() => expect(answers).toHaveLength(1));
  expect(new Set(serials).size).toBe(2);
  expect(answers).toEqual([`question by ${serials[1]}`]);
});

test("a stream that has ended listens no more, and without TLS nothing listens", async () => {
  const listeners = new Set<() => void>();
  const onChange = (listener: () => void) => {
    listeners.add(listener);
    return () => void listeners.delete(listener);
  };
  const ways: (() => AsyncGenerator<number>)[] = [
    async function* () {
      yield 1;
    },
    async function* () {
      yield 1;
      throw new Error("broken");
    },
  ];
  for (const way of ways) {
    const stream = untilRenewed<never, number>(way, { onChange })((async function* () {})(), AbortSignal.abort());
    const items = Array.fromAsync(stream).catch(() => undefined);
    expect(listeners.size).toBe(1);
    await items;
    expect(listeners.size).toBe(0);
  }
  const left = untilRenewed<never, number>(ways[0] as () => AsyncGenerator<number>, { onChange });
  for await (const _ of left((async function* () {})(), new AbortController().signal)) break;
  expect(listeners.size).toBe(0);
  const plain = ways[0] as () => AsyncGenerator<number>;
  expect(untilRenewed(plain, undefined)).toBe(plain);
});
