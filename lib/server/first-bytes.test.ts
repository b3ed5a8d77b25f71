import { once } from "node:events";
import { type AddressInfo, connect, createServer, type Server, type Socket } from "node:net";
import { afterEach, beforeEach, expect, test } from "vitest";
import { readFirstBytes } from "./first-bytes.ts";

let server: Server;
/** An accepted connection, and its other end. */
let near: Socket;
let far: Socket;

beforeEach(async () => {
  // As node's HTTP servers accept.
  server = createServer({ allowHalfOpen: true, noDelay: true });
  await once(server.listen(0, "127.0.0.1"), "listening");
  const accepted = once(server, "connection");
  far = connect((server.address() as AddressInfo).port, "127.0.0.1");
  [near] = (await accepted) as [Socket];
});
afterEach(() => {
  near.destroy();
  far.destroy();
  server.close();
});

/** Reads so many bytes of the connection. */
async function read(bytes: number): Promise<Buffer> {
  const pieces: Buffer[] = [];
  let length = 0;
  for await (const piece of near.iterator({ destroyOnReturn: false }) as AsyncIterable<Buffer>) {
    pieces.push(piece);
    length += piece.length;
    if (length >= bytes) break;
  }
  return Buffer.concat(pieces);
}

/** Resolves with the first five bytes; undefined where the connection is closed before. */
const first = (timeoutMs = 60_000, closesHalfOpen = true): Promise<string | undefined> =>
  new Promise((resolve) => {
    const find = (bytes: Buffer) => (bytes.length < 5 ? undefined : bytes.toString("latin1", 0, 5));
    readFirstBytes(near, { timeoutMs, find, closesHalfOpen }, resolve);
  });

test("puts back what was said, and what comes later follows it", async () => {
  far.write("hello, server");
  expect(await first()).toBe("hello");
  far.write("!");
  expect((await read(14)).toString()).toBe("hello, server!");
});

test("takes no more than one message, however much is said, and loses none of it", async () => {
  const all = Buffer.alloc(4 << 20, "reeve");
  far.write(all);
  expect(await first()).toBe("reeve");
  expect(near.bytesRead).toBeLessThan(all.length / 4);
  expect((await read(all.length)).equals(all)).toBe(true);
});

test.each(["end", "destroy", "resetAndDestroy"] as const)("closes one that was given up by %s", async (how) => {
  await new Promise((resolve) => far.write("hello", resolve));
  far[how]();
  expect(await first()).toBeUndefined();
});

test("closes one that was given up without a word", async () => {
  far.end();
  expect(await first()).toBeUndefined();
});

test("closes one that says nothing, or too little", async () => {
  far.write("hell");
  expect(await first(20)).toBeUndefined();
  expect(near.destroyed).toBe(true);
});

test("leaves one open that has sent its last byte, where that is asked for", async () => {
  far.end("hello");
  expect(await first(60_000, false)).toBe("hello");
  expect(near.destroyed).toBe(false);
});
