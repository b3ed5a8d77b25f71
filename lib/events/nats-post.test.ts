import { afterAll, beforeAll, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { eventually } from "../../testkit/eventually.ts";
import { type NatsServer, startNatsServer } from "../../testkit/nats-server.ts";
import { reasonOf } from "../fault/fault.ts";
import { openNatsPost } from "./nats-post.ts";

let server: NatsServer;
beforeAll(async () => {
  server = await startNatsServer();
});
afterAll(() => server?.close());

const open = () => openNatsPost({ servers: [server.url] });

test("brings messages to those who listen, in order, until they stop", async () => {
  const [sender, listener] = await Promise.all([open(), open()]);
  const heard: string[] = [];
  const stop = listener.listen("post.a", (data) => heard.push(Buffer.from(data).toString()));
  await listener.flush();
  for (const text of ["1", "2", "3"]) expect(sender.send("post.a", Buffer.from(text))).toBe(true);
  sender.send("post.b", Buffer.from("for somebody else"));
  await eventually(() => expect(heard).toEqual(["1", "2", "3"]));
  stop();
  sender.send("post.a", Buffer.from("4"));
  await sender.flush();
  await listener.flush();
  expect(heard).toHaveLength(3);
  await Promise.all([sender.close(), listener.close()]);
});

test("sends nothing while the connection is down, tells those who want to know, and comes back", async () => {
  const post = await open();
  let downs = 0;
  const heard: string[] = [];
  post.onDown(() => downs++);
  post.listen("post.c", (data) => heard.push(Buffer.from(data).toString()));
  await server.kill();
  await eventually(() => expect(post.isUp()).toBe(false));
  expect(downs).toBe(1);
  expect(post.send("post.c", Buffer.from("lost"))).toBe(false);
  expect(await post.flush().catch(reasonOf)).toBe(ErrorReason.NOT_READY);
  await server.restart();
  await post.whenUp();
  await eventually(() => {
    post.send("post.c", Buffer.from("again"));
    expect(heard).toContain("again");
  });
  expect(heard).not.toContain("lost");
  await post.close();
});
