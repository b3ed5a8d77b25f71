import type { ServerResponse } from "node:http";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { HttpGetRequestSchema, HttpPostRequestSchema } from "../../../gen/ts/reeve/tools/v1/http_pb.ts";
import type { Resolve } from "../hosts/resolve-host.ts";
import { createHttpTools } from "./http.ts";
import { createTestContext, faultOf, type TestContext } from "./testing/context.ts";
import { startWebServer, type WebServer } from "./testing/web-server.ts";

const VALUE = "sk-0123456789abcdef";
const HANDLE = ["$", "{secret:TOKEN}"].join("");

let server: WebServer;
let other: WebServer;
let test1: TestContext;

beforeEach(async () => {
  other = await startWebServer((_, response) => response.end("the other one"));
  server = await startWebServer(({ path, body }, response) => answer(path, body, response));
  test1 = contextFor([`127.0.0.1:${server.port}`, `127.0.0.1:${other.port}`]);
});
afterEach(async () => {
  test1[Symbol.dispose]();
  await server[Symbol.asyncDispose]();
  await other[Symbol.asyncDispose]();
});

function contextFor(hosts: string[]): TestContext {
  const secrets = new Map([["TOKEN", { value: VALUE, hosts: ["127.0.0.1"] }]]);
  return createTestContext({ hosts, secrets });
}

function answer(path: string, body: string, response: ServerResponse): void {
  const to = new URL(path, "http://x").searchParams.get("to");
  if (to !== null) response.writeHead(302, { location: to }).end();
  else if (path === "/loop") response.writeHead(307, { location: "/loop" }).end();
  else if (path === "/bytes") response.end(Buffer.from([0xff, 0xfe, 0x00]));
  else if (path === "/long") response.end("€".repeat(100_000));
  else if (path === "/never") response.writeHead(200).write("begun");
  else if (path === "/echo")
    response.writeHead(201, { "x-seen": "yes" }).end(`${body} ${server.asked.at(-1)?.headers.authorization}`);
  else response.end(`at ${path}`);
}

const tools = (resolve?: Resolve) => createHttpTools(resolve === undefined ? {} : { resolve });
const get = (
  url: string,
  more: { headers?: Record<string, string>; maxBytes?: number } = {},
  context = test1.context,
) => tools().get(create(HttpGetRequestSchema, { url, ...more }), context);
const post = (url: string, more: { body?: string; headers?: Record<string, string> } = {}) =>
  tools().post(create(HttpPostRequestSchema, { url, ...more }), test1.context);

describe("http.get", () => {
  test("returns what a host that the owner named answers", async () => {
    const found = await get(`${server.origin}/a?b=c#d`, { headers: { Accept: "text/plain" } });
    expect(found).toMatchObject({ status: 200, url: `${server.origin}/a?b=c`, text: "at /a?b=c", truncated: false });
    expect(server.asked).toMatchObject([{ method: "GET", path: "/a?b=c", headers: { accept: "text/plain" } }]);
  });

  test("returns bytes that are no text as bytes, and a cut text without half a character", async () => {
    expect(await get(`${server.origin}/bytes`)).toMatchObject({ data: new Uint8Array([0xff, 0xfe, 0x00]) });
    expect(await get(`${server.origin}/long`, { maxBytes: 10 })).toMatchObject({ text: "€€€", truncated: true });
  });

  test("follows a redirect within a host with its headers, and to another one without", async () => {
    const headers = { authorization: `Bearer ${HANDLE}` };
    expect(await get(`${server.origin}/?to=/there`, { headers })).toMatchObject({ text: "at /there" });
    expect(server.asked.map((one) => one.headers.authorization)).toEqual([`Bearer ${VALUE}`, `Bearer ${VALUE}`]);
    expect(await get(`${server.origin}/?to=${other.origin}/x`, { headers })).toMatchObject({ text: "the other one" });
    expect(other.asked[0]?.headers.authorization).toBeUndefined();
  });

  test.each([
    ["this machine", "http://127.0.0.2/"],
    ["this machine in another form", "http://0x7f.2/"],
    ["this machine by its IPv6 address", "http://[::1]/"],
    ["a cloud's metadata", "http://169.254.169.254/latest/meta-data/"],
    ["a private network", "https://10.0.0.1/"],
    ["a host that was not named", "https://example.com/"],
    ["another port", "http://127.0.0.1:1/"],
  ])("asks nothing of %s, at first or after a redirect", async (_, url) => {
    for (const asked of [url, `${server.origin}/?to=${encodeURIComponent(url)}`]) {
      const { reason, metadata } = await faultOf(get(asked));
      expect([reason, metadata.field]).toEqual([ErrorReason.HOST_NOT_GRANTED, "url"]);
    }
  });

  test("follows no redirect to something else, and not for ever", async () => {
    for (const to of ["file:///etc/passwd", "ftp://127.0.0.1/", `http://u:p@127.0.0.1:${server.port}/`])
      expect((await faultOf(get(`${server.origin}/?to=${encodeURIComponent(to)}`))).metadata.errno).toBe("EREDIRECT");
    expect((await faultOf(get(`${server.origin}/loop`))).metadata.errno).toBe("EREDIRECT");
    expect(server.asked.filter(({ path }) => path === "/loop")).toHaveLength(6);
  });

  test("asks no named host whose name stands for an address that was not named", async () => {
    using named = contextFor(["api.example.com:80", `api.example.com:${server.port}`]);
    for (const address of ["127.0.0.1", "169.254.169.254", "10.0.0.1", "::1", "::ffff:127.0.0.1", "fd00::1"]) {
      const resolve: Resolve = async () => [
        { address: "93.184.216.34", family: 4 },
        { address, family: address.includes(":") ? 6 : 4 },
      ];
      const url = `http://api.example.com:${server.port}/`;
      const refused = await faultOf(tools(resolve).get(create(HttpGetRequestSchema, { url }), named.context));
      expect([address, refused.reason]).toEqual([address, ErrorReason.HOST_NOT_GRANTED]);
    }
    expect(server.asked).toEqual([]);
  });

  test("goes to the address that was checked, whatever the name stands for afterwards", async () => {
    using named = contextFor([`rebound.example:${server.port}`, "127.0.0.1"]);
    let lookups = 0;
    const resolve: Resolve = async () => {
      lookups++;
      return [{ address: lookups === 1 ? "127.0.0.1" : "127.0.0.3", family: 4 }];
    };
    const url = `http://rebound.example:${server.port}/a`;
    const found = await tools(resolve).get(create(HttpGetRequestSchema, { url }), named.context);
    expect([found.text, lookups, server.asked[0]?.headers.host]).toEqual([
      "at /a",
      1,
      `rebound.example:${server.port}`,
    ]);
    // The next request is a new look, and a new check.
    const again = await faultOf(tools(resolve).get(create(HttpGetRequestSchema, { url }), named.context));
    expect(again.reason).toBe(ErrorReason.HOST_NOT_GRANTED);
  });

  test.each([
    ["a user name", { url: "http://u@127.0.0.1/" }, "url"],
    ["a secret in the address", { url: `http://127.0.0.1/${HANDLE}` }, "url"],
    ["a header that the device sets", { url: "http://127.0.0.1/", headers: { Host: "evil.example" } }, "headers"],
    ["a header of proxies", { url: "http://127.0.0.1/", headers: { "Proxy-Authorization": "x" } }, "headers"],
  ])("does not take %s", async (_, input, field) => {
    const { reason, metadata } = await faultOf(tools().get(create(HttpGetRequestSchema, input), test1.context));
    expect([reason, metadata.field]).toEqual([ErrorReason.INVALID_INPUT, field]);
  });

  test("ends with its call", async () => {
    const stopped = new AbortController();
    const context = { ...test1.context, signal: stopped.signal };
    const running = faultOf(get(`${server.origin}/never`, {}, context));
    while (server.asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    stopped.abort();
    expect([ErrorReason.CANCELED, ErrorReason.TIMED_OUT]).toContain((await running).reason);
  });

  test("says that nothing listens, without the request's words", async () => {
    const { port } = other;
    await other[Symbol.asyncDispose]();
    const headers = { authorization: HANDLE };
    const { reason, metadata, message } = await faultOf(get(`http://127.0.0.1:${port}/`, { headers }));
    expect([reason, metadata.errno]).toEqual([ErrorReason.TOOL_FAILED, "ECONNREFUSED"]);
    expect(message).not.toContain(VALUE);
    other = await startWebServer(() => undefined);
  });
});

describe("http.post", () => {
  test("sends a body with its secrets, which do not come back", async () => {
    const found = await post(`${server.origin}/echo`, {
      body: `{"token":"${HANDLE}"}`,
      headers: { authorization: `Bearer ${HANDLE}` },
    });
    expect(server.asked).toMatchObject([{ method: "POST", body: `{"token":"${VALUE}"}` }]);
    expect(server.asked[0]?.headers["content-type"]).toBe("application/json");
    expect(found).toMatchObject({ status: 201, text: '{"token":"[redacted]"} Bearer [redacted]' });
    expect(found.headers).toMatchObject({ "x-seen": "yes" });
  });

  test("follows no redirect", async () => {
    const found = await post(`${server.origin}/?to=${other.origin}/`, { body: "{}" });
    expect([found.status, found.headers?.location]).toEqual([302, `${other.origin}/`]);
    expect(other.asked).toEqual([]);
  });

  test("sends a secret to no host that it is not for", async () => {
    using mine = createTestContext({
      hosts: [`127.0.0.1:${server.port}`],
      secrets: new Map([["TOKEN", { value: VALUE, hosts: ["api.example.com"] }]]),
    });
    const input = create(HttpPostRequestSchema, { url: server.origin, body: HANDLE });
    expect((await faultOf(tools().post(input, mine.context))).reason).toBe(ErrorReason.SECRET_REFUSED);
    expect(server.asked).toEqual([]);
  });
});
