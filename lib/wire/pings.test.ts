import { once } from "node:events";
import { connect, createServer, type Http2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { eventually } from "../../testkit/eventually.ts";
import { pingsOf } from "./pings.ts";

/** Of a PING frame (RFC 9113 §6.7). */
const FRAME_BYTES = 17;

test("a ping proves the connection alive to both ends, and nothing comes from one that is gone", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  const opened = once(server, "session") as Promise<[Http2Session]>;
  await once(server, "listening");
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const [session] = await opened;
  await once(client, "connect");
  const [near, far] = [pingsOf(() => client), pingsOf(() => session)];
  const bytes = () => [near.receivedBytes(), far.receivedBytes()] as const;
  await eventually(() => expect(Math.min(...bytes())).toBeGreaterThan(0));
  await eventually(() => expect([client.pendingSettingsAck, session.pendingSettingsAck]).toEqual([false, false]));
  for (const pings of [near, far]) {
    const [nearBytes, farBytes] = bytes();
    pings.ping();
    await eventually(() => expect(bytes()).toEqual([nearBytes + FRAME_BYTES, farBytes + FRAME_BYTES]));
  }
  near.drop();
  await Promise.all([once(client, "close"), once(session, "close")]);
  near.ping();
  server.close();
  await once(server, "close");
  near.drop();
  expect(bytes()).toEqual([0, 0]);
  expect(pingsOf(() => undefined).receivedBytes()).toBe(0);
});
