import { createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { Echo } from "./echo.fixture.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";
import { transportFor, type Way, ways } from "./transports.fixture.ts";

let echo: EchoServer;
beforeAll(async () => {
  echo = await startEcho();
});
afterAll(() => echo.server.close(0));

async function* words(...list: string[]): AsyncGenerator<{ text: string }> {
  for (const text of list) yield { text };
}

async function texts(messages: AsyncIterable<{ text: string }>): Promise<string[]> {
  const found: string[] = [];
  for await (const { text } of messages) found.push(text);
  return found;
}

describe.each(ways)("%s over HTTP/%s in %s", (...way: Way) => {
  test("answers a unary call", async () => {
    const client = createClient(Echo, transportFor(way, echo.url));
    const answer = await client.say({
      text: "héllo",
      maxBytes: 7,
      words: ["a"],
      env: { A: "1" },
      data: { x: [1, null] },
    });
    expect(answer).toMatchObject({ text: "héllo", maxBytes: 7, words: ["a"], env: { A: "1" }, data: { x: [1, null] } });
  });

  test("streams to the caller", async () => {
    const client = createClient(Echo, transportFor(way, echo.url));
    expect(await texts(client.down({ words: ["a", "b", "c"] }))).toEqual(["a", "b", "c"]);
  });

  test("streams from the caller", async () => {
    const client = createClient(Echo, transportFor(way, echo.url));
    expect(await client.up(words("a", "b"))).toMatchObject({ words: ["a", "b"] });
  });

  test.runIf(way[1] === "2")("streams both ways", async () => {
    const client = createClient(Echo, transportFor(way, echo.url));
    expect(await texts(client.both(words("a", "b", "c")))).toEqual(["a", "b", "c"]);
  });

  test("carries a message of 3 MiB each way", async () => {
    const client = createClient(Echo, transportFor(way, echo.url));
    const data = { blob: "x".repeat(3 * 1024 * 1024) };
    expect((await client.say({ data })).data).toEqual(data);
  });
});

test("answers a Connect GET of an RPC without side effects", async () => {
  const query = new URLSearchParams({ connect: "v1", encoding: "json", message: '{"text":"hi"}' });
  const answer = await fetch(`${echo.url}/reeve.test.v1.Echo/Say?${query}`, {
    headers: { authorization: "Bearer agent-token" },
  });
  expect(await answer.json()).toEqual({ text: "hi" });
});

test("falls back to HTTP/1.1 where a client offers to upgrade", async () => {
  const answer = await fetch(`${echo.url}/healthz`, { headers: { "http2-settings": "AAMAAABkAARAAAAAAAIAAAAA" } });
  expect(answer.status).toBe(200);
});

test("compresses nothing", async () => {
  const answer = await fetch(`${echo.url}/reeve.test.v1.Echo/Say`, {
    method: "POST",
    headers: { authorization: "Bearer agent-token", "content-type": "application/json", "accept-encoding": "gzip, br" },
    body: JSON.stringify({ data: { text: "x".repeat(10_000) } }),
  });
  expect(answer.headers.get("content-encoding")).toBeNull();
});

test("counts and logs each call with its protocol", async () => {
  await createClient(Echo, transportFor(["grpc", "2", "binary"], echo.url)).say({ text: "x" });
  expect(echo.lines).toContainEqual({
    level: "info",
    time: expect.any(String),
    service: "test",
    request_id: expect.any(String),
    procedure: "reeve.test.v1.Echo/Say",
    actor: "agent-1",
    protocol: "grpc",
    code: "ok",
    ms: expect.any(Number),
    msg: "rpc",
  });
});
