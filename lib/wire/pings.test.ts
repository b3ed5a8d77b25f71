import { once } from "node:events";
import { connect, createServer, type Http2Session } from "node:http2";
import type { AddressInfo } from "node:net";
import { expect, test } from "vitest";
import { eventually } from "../../testkit/eventually.ts";
import { pingsOf } from "./pings.ts";

test("a ping proves the connection alive to both ends, and nothing comes from one that is gone", async () => {
  const server = createServer().listen(0, "127.0.0.1");
  const opened = once(server, "session") as Promise<[Http2Session]>;
  await once(server, "listening");
  const client = connect(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
  const [session] = await opened;
  await once(client, "connect");
  const [near, far] = [pingsOf(client), pingsOf(session)];
  expect(pingsOf(client)).toBe(near);
  expect([near.signs, far.signs]).toEqual([0, 0]);
  near.ping();
  await eventually(() => expect([near.signs, far.signs]).toEqual([1, 1]));
  far.ping();
  await eventually(() => expect([near.signs, far.signs]).toEqual([2, 2]));
  near.drop();
  await Promise.all([once(client, "close"), once(session, "close")]);
  near.ping();
  server.close();
  await once(server, "close");
  expect([near.signs, far.signs]).toEqual([2, 2]);
});
