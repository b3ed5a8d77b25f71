import { once } from "node:events";
import { createServer as createHttp } from "node:http";
import { type AddressInfo, connect, createServer as createTcp, type Socket } from "node:net";
import { createInterface } from "node:readline";
import { setImmediate } from "node:timers/promises";
import { markConnectionError } from "../../server/connection-errors.ts";
import { runGuarded } from "../run-guarded.ts";

/**
 * A process that learns on standard input, a word a line, what is to go wrong in it. It answers each word that leaves it
 * alive, serves "/slow", whose answer is half-way out until the process closes, and takes 60 s to close after "stuck".
 */
const failures: Record<string, () => unknown> = {
  /** A real reset of a connection whose error nothing listens for. */
  async reset() {
    const server = createTcp();
    const accepted = once(server.listen(0, "127.0.0.1"), "listening").then(() => once(server, "connection"));
    await once(server, "listening");
    const client = connect((server.address() as AddressInfo).port, "127.0.0.1");
    const [socket] = (await accepted) as [Socket];
    socket.resume();
    client.resetAndDestroy();
    // Its "close" event never comes: the error that nothing listens for is thrown before it.
    while (!socket.destroyed) await setImmediate();
    server.close();
  },
  /** Work for a caller that nothing waits for any more when the caller's connection fails. */
  marked() {
    const cause = new Error("read ECONNRESET");
    markConnectionError(cause);
    void Promise.reject(new Error("the request failed", { cause }));
  },
  throw: () => queueMicrotask(() => raise(new Error("a mistake of ours"))),
  reject: () => void Promise.reject(new Error("a mistake of ours")),
  /** A loop of the program that ends because a connection of its own broke. */
  loop: () => void Promise.reject(Object.assign(new Error("read ECONNRESET"), { code: "ECONNRESET" })),
  stuck: () => {
    closing = new Promise((resolve) => setTimeout(resolve, 60_000));
  },
};

let closing: Promise<unknown> = Promise.resolve();

function raise(error: Error): never {
  throw error;
}

async function start() {
  const closed = Promise.withResolvers<void>();
  const http = createHttp((_request, response) => {
    response.write("begun,");
    void closed.promise.then(() => response.end("done"));
  });
  await once(http.listen(0, "127.0.0.1"), "listening");
  const obey = async (word: string): Promise<void> => {
    await failures[word]?.();
    await setImmediate();
    process.stdout.write(`after ${word}\n`);
  };
  createInterface({ input: process.stdin }).on("line", (word) => void obey(word));
  process.stdout.write(`${(http.address() as AddressInfo).port}\n`);
  return {
    async close() {
      const ended = once(http, "close");
      http.close();
      closed.resolve();
      process.stdin.destroy();
      await Promise.all([ended, closing]);
    },
  };
}

await runGuarded({ name: "guarded", start, say: (text) => process.stderr.write(text) });
