import { once } from "node:events";
import { type ClientHttp2Session, connect as connectH2, constants } from "node:http2";
import { connect } from "node:net";
import { setTimeout as sleep } from "node:timers/promises";
import { afterAll, afterEach, beforeAll, beforeEach, expect, test } from "vitest";
import { createLogger } from "../log/log.ts";
import { askH1, askOddly, blamesServer, type OddRequest, oddRequests } from "./odd-requests.fixture.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";
import { createStrangerLog } from "./stranger-log.ts";

const RPCS = ["Say", "Down", "Both"].map((name) => `/reeve.test.v1.Echo/${name}`);
const OPEN = ["/grpc.health.v1.Health/Check", "/grpc.reflection.v1.ServerReflection/ServerReflectionInfo"];

let echo: EchoServer;
const warnings: Error[] = [];
const onWarning = (warning: Error) => void warnings.push(warning);
beforeAll(async () => {
  process.on("warning", onWarning);
  echo = await startEcho(
    {},
    {
      fallback: async (request, response) => {
        if (request.path !== "/invoke") return false;
        response.json(200, { length: (await request.readBody()).length });
        return true;
      },
    },
  );
});
afterAll(async () => {
  process.off("warning", onWarning);
  await echo.server.close(0);
});

beforeEach(() => {
  echo.lines.length = 0;
  warnings.length = 0;
});
afterEach(async () => {
  const { lines } = echo;
  // A request of its own, so that what came before it has been written.
  const known = { authorization: "Bearer agent-token", "x-request-id": `after-${performance.now()}` };
  await fetch(`${echo.url}/nowhere`, { headers: known });
  await echo.logged((line) => line.request_id === known["x-request-id"]);
  expect(lines.filter((line) => line.level === "error" || line.level === "warn")).toEqual([]);
  expect(JSON.stringify(lines)).not.toContain('"stack"');
  expect(warnings).toEqual([]);
});

async function blamed(headers: Record<string, string>, paths: readonly string[]): Promise<unknown[]> {
  const found: unknown[] = [];
  await askOddly(echo.url, oddRequests(paths), headers, (request, answer) => {
    if (blamesServer(answer)) found.push({ ...request, body: Buffer.from(request.body).toString("hex"), answer });
  });
  return found;
}

test.each([
  ["a stranger", {}],
  ["a known caller", { authorization: "Bearer agent-token" }],
])("no odd request of %s is answered as a mistake of the server, or makes it shout", async (_, headers) => {
  expect(await blamed(headers, [...RPCS, ...OPEN])).toEqual([]);
});

const odd = (path: string, more: Partial<OddRequest> = {}): OddRequest => ({
  method: "GET",
  path,
  headers: {},
  body: Buffer.alloc(0),
  ...more,
});

test.each(["//[::1", "//[", "/?%", "//%", "/\\", "/invoke?%ff=%zz", "http://[/", "/healthz/..", "*"])(
  "GET %s is no mistake of the server",
  async (path) => {
    const answer = await askH1(echo.url, odd(path));
    expect(answer.status).toBeGreaterThanOrEqual(200);
    expect(blamesServer(answer)).toBe(false);
  },
);

test("a deadline that no timer takes is refused, naming its header", async () => {
  const headers = { authorization: "Bearer agent-token", "content-type": "application/json" };
  const request = odd(RPCS[0] ?? "", { method: "POST", body: Buffer.from("{}") });
  const long = await askH1(echo.url, { ...request, headers: { ...headers, "connect-timeout-ms": "9999999999" } });
  expect(long).toMatchObject({ status: 400, text: expect.stringContaining("connect-timeout-ms: must be at most") });
  const over = await askH1(echo.url, { ...request, headers: { ...headers, "connect-timeout-ms": "0" } });
  expect(over).toMatchObject({ status: 504, text: expect.stringContaining("deadline_exceeded") });
});

/** Resolves when the server has read all that was sent before. */
async function answeredPing(session: ClientHttp2Session): Promise<void> {
  if (session.connecting) await once(session, "connect");
  const { promise, resolve } = Promise.withResolvers<void>();
  session.ping(() => resolve());
  await promise;
}

test("hanging up in a body, or with any code, is a departure", async () => {
  const { hostname, port } = new URL(echo.url);
  for (const path of ["/invoke", RPCS[0], OPEN[0]]) {
    const socket = connect(Number(port), hostname);
    socket.write(
      `POST ${path} HTTP/1.1\r\nhost: localhost\r\nauthorization: Bearer agent-token\r\n` +
        "content-type: application/json\r\ncontent-length: 100\r\nexpect: 100-continue\r\n\r\n{",
    );
    // The server has read the head. What a reset finds unread is lost.
    await once(socket, "data");
    socket.resetAndDestroy();
    for (const code of [constants.NGHTTP2_INTERNAL_ERROR, constants.NGHTTP2_PROTOCOL_ERROR, constants.NGHTTP2_CANCEL]) {
      const session = connectH2(echo.url);
      session.on("error", () => undefined);
      const stream = session.request({
        ":method": "POST",
        ":path": path,
        authorization: "Bearer agent-token",
        "content-type": "application/json",
      });
      stream.on("error", () => undefined);
      stream.write("{");
      await answeredPing(session);
      stream.close(code);
      await answeredPing(session);
      session.destroy();
    }
  }
  const ended = (path: string) => echo.lines.filter((line) => JSON.stringify(line).includes(path));
  await echo.logged(() => ended("Echo/Say").length === 4 && ended("/invoke").length === 4);
  // Node reports some resets as the end of the body, which then is half a document.
  const codes = ended("Echo/Say").map((line) => line.code);
  expect(codes).toContain("canceled");
  expect(codes.filter((code) => code !== "canceled" && code !== "invalid_argument")).toEqual([]);
});

test.each(["Down", "Both"])(
  "a stream %s that its caller cuts off with an error of its own choice is a departure",
  async (rpc) => {
    const session = connectH2(echo.url);
    session.on("error", () => undefined);
    const stream = session.request({
      ":method": "POST",
      ":path": `/reeve.test.v1.Echo/${rpc}`,
      authorization: "Bearer agent-token",
      "content-type": "application/grpc+json",
    });
    stream.on("error", () => undefined);
    stream.write(Buffer.from([0, 0, 0, 0, 12, ...Buffer.from('{"text":"a"}')]));
    if (rpc === "Both") await once(stream, "data");
    stream.close(constants.NGHTTP2_INTERNAL_ERROR);
    const line = await echo.logged(({ procedure }) => procedure === `reeve.test.v1.Echo/${rpc}`);
    expect(line.code).toBeOneOf(["canceled", "unimplemented"]);
    session.destroy();
  },
);

test("strangers get so many lines, and the others are reported in one", async () => {
  const lines: Record<string, unknown>[] = [];
  const write = (line: string): void => void lines.push(JSON.parse(line) as Record<string, unknown>);
  const log = createStrangerLog(createLogger({ service: "test", destination: { write } }), { most: 2, windowMs: 50 });
  expect([1, 2, 3, 4, 5].map(() => log.admit())).toEqual([true, true, false, false, false]);
  while (lines.length === 0) await sleep(5);
  expect(lines).toMatchObject([{ level: "info", skipped: 3, msg: "requests without a principal not logged" }]);
  expect(log.admit()).toBe(true);
});

test("a thousand requests of a stranger write no more than a window's lines, and are all counted", async () => {
  const requests = Array.from({ length: 1000 }, () => odd(`/${"a".repeat(5000)}`));
  await askOddly(echo.url, requests, {}, (_, { status }) => expect(status).toBe(404));
  expect(echo.lines.length).toBeLessThanOrEqual(25);
  const metrics = await (await fetch(`${echo.url}/metrics`)).text();
  expect(Number(/^reeve_http_requests_total\{status="404"\} (\d+)$/m.exec(metrics)?.[1])).toBeGreaterThanOrEqual(1000);
  for (const line of echo.lines) expect(JSON.stringify(line).length).toBeLessThan(600);
});
