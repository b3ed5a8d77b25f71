import { mkdtemp, rm, stat, writeFile } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { Code, createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, expect, test } from "vitest";
import { createServiceTransport } from "../rpc-client/transport.ts";
import { localKey } from "./context.ts";
import { Echo } from "./echo.fixture.ts";
import { startEcho } from "./server.fixture.ts";

let folder: string;
let socketPath: string;
beforeEach(async () => {
  folder = await mkdtemp(join(tmpdir(), "reeve-socket-"));
  socketPath = join(folder, "echo.sock");
});
afterEach(() => rm(folder, { recursive: true }));

const dial = (path: string | undefined, baseUrl = "http://127.0.0.1:1") =>
  createServiceTransport({ baseUrl, socketPath: path, token: "agent-token" });

async function collect<T>(items: AsyncIterable<T>): Promise<T[]> {
  const all: T[] = [];
  for await (const item of items) all.push(item);
  return all;
}

async function* words(...texts: string[]) {
  for (const text of texts) yield { text };
}

test("serves calls and streams on a socket that only its owner can open, and says so to handlers", async () => {
  const seen: boolean[] = [];
  const { server } = await startEcho(
    {
      say: (request, context) => {
        seen.push(context.values.get(localKey));
        return request;
      },
    },
    { socketPath },
  );
  expect([server.url, (await stat(socketPath)).mode & 0o777]).toEqual([`unix:${socketPath}`, 0o600]);
  const transport = dial(socketPath);
  const client = createClient(Echo, transport);
  expect(await client.say({ text: "hello" })).toMatchObject({ text: "hello" });
  expect(await collect(client.both(words("one", "two")))).toMatchObject([{ text: "one" }, { text: "two" }]);
  expect(seen).toEqual([true]);
  transport.close();
  await server.close(0);
  await expect(stat(socketPath)).rejects.toThrow("ENOENT");
});

test("a call by a port does not come by a socket", async () => {
  const seen: boolean[] = [];
  const say = (request: { text: string }, context: { values: { get(key: typeof localKey): boolean } }) => {
    seen.push(context.values.get(localKey));
    return request;
  };
  const { server, url } = await startEcho({ say });
  const transport = dial(undefined, url);
  await createClient(Echo, transport).say({ text: "hello" });
  expect(seen).toEqual([false]);
  transport.close();
  await server.close(0);
});

test("takes the place of a socket that a process left behind, and of no other file", async () => {
  await writeFile(socketPath, "precious");
  await expect(startEcho({}, { socketPath })).rejects.toThrow("EADDRINUSE");
  await rm(socketPath);
  const first = await startEcho({}, { socketPath });
  const second = await startEcho({}, { socketPath });
  const transport = dial(socketPath);
  expect(await createClient(Echo, transport).say({ text: "second" })).toMatchObject({ text: "second" });
  transport.close();
  await second.server.close(0);
  await first.server.close(0);
});

test("reports that nothing listens", async () => {
  const transport = dial(socketPath);
  const said = createClient(Echo, transport).say({ text: "x" });
  await expect(said).rejects.toMatchObject({ code: Code.Unavailable, rawMessage: `connect ENOENT ${socketPath}` });
  transport.close();
});
