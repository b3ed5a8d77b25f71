import { once } from "node:events";
import { connect as connectH2 } from "node:http2";
import { Readable } from "node:stream";
import { text } from "node:stream/consumers";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { eventually } from "../../testkit/eventually.ts";
import { requireRole } from "../auth/principal.ts";
import { fault } from "../fault/fault.ts";
import { parseStrictJson } from "../json/strict-json.ts";
import { DatabaseUnreachable } from "../store/postgres-errors.ts";
import { createMetrics } from "./metrics.ts";
import type { Challenge, Fallback } from "./plain-http.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";

const fallback: Fallback = async (request, response) => {
  switch (request.path) {
    case "/whoami":
      response.json(200, { id: request.principal?.id ?? null, q: request.query.get("q"), method: request.method });
      return true;
    case "/invoke":
      requireRole(request.principal, [Role.AGENT]);
      response.json(202, { got: parseStrictJson(await request.readBody(1000)) });
      return true;
    case "/deny":
      throw fault(
        ErrorReason.POLICY_DENIED,
        { rules: "r1" },
        { message: "no", violations: [{ field: "a.b", message: "bad" }] },
      );
    case "/crash":
      throw new Error("password is hunter2");
    case "/unavailable":
      throw new DatabaseUnreachable("connect ECONNREFUSED 10.0.0.7:5432");
    case "/half":
      response.raw.write("half");
      throw new Error("after the headers");
    default:
      return false;
  }
};

const challenge: Challenge = (path, hasToken) =>
  path === "/invoke" ? `Bearer${hasToken ? ' error="invalid_token"' : ""}` : undefined;

let echo: EchoServer;
beforeAll(async () => {
  echo = await startEcho({}, { fallback, challenge, limits: { requestTimeoutMs: 60_000 } });
});
afterAll(() => echo.server.close(0));

interface Answer {
  status: number;
  body: unknown;
  requestId: string | null;
}

async function overH1(method: string, path: string, headers: Record<string, string>, body?: string): Promise<Answer> {
  const answer = await fetch(echo.url + path, { method, headers, ...(body !== undefined && { body }) });
  return { status: answer.status, body: await answer.json(), requestId: answer.headers.get("x-request-id") };
}

async function overH2(method: string, path: string, headers: Record<string, string>, body?: string): Promise<Answer> {
  const session = connectH2(echo.url);
  const stream = session.request({ ":method": method, ":path": path, ...headers });
  stream.end(body);
  const [head] = (await once(stream, "response")) as [Record<string, string | number>];
  const answer = { status: Number(head[":status"]), body: JSON.parse(await text(stream)) as unknown };
  session.close();
  return { ...answer, requestId: String(head["x-request-id"]) };
}

const agent = { authorization: "Bearer agent-token" };

describe.each([
  ["HTTP/1.1", overH1],
  ["HTTP/2", overH2],
])("over %s", (_name, call) => {
  test("the fallback gets the principal and the request", async () => {
    expect(await call("GET", "/whoami?q=a%20b", agent)).toMatchObject({
      status: 200,
      body: { id: "agent-1", q: "a b", method: "GET" },
    });
    expect(await call("DELETE", "/whoami", {})).toMatchObject({ body: { id: null, q: null, method: "DELETE" } });
  });

  test("a token that is not valid never reaches it", async () => {
    expect(await call("GET", "/whoami", { authorization: "Bearer x" })).toMatchObject({
      status: 401,
      body: { code: "unauthenticated", reason: "unauthenticated", metadata: {}, violations: [] },
    });
  });

  test("who is not let in reads where to get a token, on the paths that say so", async () => {
    const challengeOf = async (path: string, headers: Record<string, string>) => {
      const answer = await fetch(echo.url + path, { method: "POST", headers, body: "{}" });
      await answer.body?.cancel();
      return answer.headers.get("www-authenticate");
    };
    expect(await challengeOf("/invoke", {})).toBe("Bearer");
    expect(await challengeOf("/invoke", { authorization: "Bearer x" })).toBe('Bearer error="invalid_token"');
    expect(await challengeOf("/invoke", { authorization: "Bearer operator-token" })).toBe(null);
    expect(await challengeOf("/whoami", { authorization: "Bearer x" })).toBe(null);
  });

  test("it can ask for a role", async () => {
    expect(await call("POST", "/invoke", {}, "{}")).toMatchObject({ status: 401 });
    expect(await call("POST", "/invoke", { authorization: "Bearer operator-token" }, "{}")).toMatchObject({
      status: 403,
      body: { code: "permission_denied", reason: "role_required", metadata: { roles: "agent" } },
    });
    expect(await call("POST", "/invoke", agent, '{"a":1}')).toMatchObject({ status: 202, body: { got: { a: 1 } } });
  });

  test("bad JSON and a large body are faults, and the connection goes on", async () => {
    expect(await call("POST", "/invoke", agent, '{"a":1,"a":2}')).toMatchObject({
      status: 400,
      body: { code: "invalid_argument", reason: "invalid_input", metadata: { field: "a", rule: "duplicate_key" } },
    });
    expect(await call("POST", "/invoke", agent, "x".repeat(2_000_000))).toMatchObject({
      status: 400,
      body: { reason: "input_too_large", metadata: { limit: "1000" } },
    });
    expect(await call("POST", "/invoke", agent, "{}")).toMatchObject({ status: 202 });
  });

  test("what it throws is written whole where it is a fault", async () => {
    expect((await call("GET", "/deny", agent)).body).toEqual({
      code: "permission_denied",
      reason: "policy_denied",
      message: "no",
      metadata: { rules: "r1" },
      violations: [{ field: "a.b", message: "bad" }],
    });
  });

  test("and as a request id where it is not", async () => {
    const answer = await call("GET", "/crash", agent);
    expect(answer).toMatchObject({
      status: 500,
      body: { code: "internal", metadata: { request_id: answer.requestId } },
    });
    expect(JSON.stringify(answer.body)).not.toContain("hunter2");
    const line = await echo.logged((entry) => entry.request_id === answer.requestId && entry.level === "error");
    expect(line).toMatchObject({ err: { message: "password is hunter2" } });
  });

  test("and as 503 where the database is unavailable, without its address", async () => {
    const answer = await call("GET", "/unavailable", agent);
    expect(answer).toMatchObject({ status: 503, body: { code: "unavailable", reason: "not_ready" } });
    expect(JSON.stringify(answer.body)).not.toContain("10.0.0.7");
  });

  test("a path that does not exist is 404", async () => {
    expect(await call("GET", "/nope", {})).toMatchObject({
      status: 404,
      body: { reason: "not_found", metadata: { resource: "/nope" } },
    });
  });

  test("one line is logged for each request", async () => {
    const { requestId } = await call("GET", "/whoami?q=secret", { ...agent, "x-request-id": `line-${_name.slice(5)}` });
    expect(await echo.logged((entry) => entry.request_id === requestId)).toMatchObject({
      msg: "http",
      method: "GET",
      path: "/whoami",
      actor: "agent-1",
      status: 200,
    });
  });
});

test("a large body without a length is refused as soon as it is too large", async () => {
  async function* body(): AsyncGenerator<Uint8Array> {
    for (let piece = 0; piece < 100; piece++) yield new Uint8Array(10_000);
  }
  const init = { method: "POST", headers: agent, body: Readable.toWeb(Readable.from(body())), duplex: "half" };
  const answer = await fetch(`${echo.url}/invoke`, init as unknown as RequestInit);
  expect(answer.status).toBe(400);
  expect((await fetch(`${echo.url}/invoke`, { method: "POST", headers: agent, body: "{}" })).status).toBe(202);
});

test("an answer that breaks half-way is cut off, not ended as if it were whole", async () => {
  const whole = fetch(`${echo.url}/half`).then((answer) => answer.text());
  await expect(whole).rejects.toThrow();
});

test("metrics are Prometheus text with counts, durations, what is in flight, and the process", async () => {
  const other = await startEcho({}, { metrics: createMetrics() });
  const say = (init: RequestInit): Promise<Response> =>
    fetch(`${other.url}/reeve.test.v1.Echo/Say`, { method: "POST", body: "{}", ...init });
  await say({ headers: { ...agent, "content-type": "application/json" } });
  await say({ headers: { "content-type": "application/json" } });
  const answer = await fetch(`${other.url}/metrics`);
  const lines = (await answer.text()).split("\n");
  expect(answer.headers.get("content-type")).toContain("text/plain");
  expect(lines).toContain('reeve_rpc_total{service="reeve.test.v1.Echo",method="Say",code="ok"} 1');
  expect(lines).toContain('reeve_rpc_total{service="reeve.test.v1.Echo",method="Say",code="unauthenticated"} 1');
  expect(lines).toContain('reeve_rpc_duration_seconds_count{service="reeve.test.v1.Echo",method="Say"} 2');
  expect(lines).toContain('reeve_rpc_in_flight{service="reeve.test.v1.Echo",method="Say"} 0');
  expect(lines.some((line) => line.startsWith("process_cpu_seconds_total"))).toBe(true);
  await other.server.close(0);
});

test("a path that waits ends when the server is done waiting for it, and when its caller leaves", async () => {
  const ends: unknown[] = [];
  let entered = 0;
  const slow = await startEcho(
    {},
    {
      fallback: async ({ signal }) => {
        await new Promise((_, reject) => {
          signal.addEventListener("abort", () => {
            ends.push(signal.reason);
            reject(signal.reason as Error);
          });
          entered++;
        });
        return true;
      },
    },
  );
  const leaving = new AbortController();
  const left = fetch(`${slow.url}/wait`, { signal: leaving.signal });
  await eventually(() => expect(entered).toBe(1));
  leaving.abort();
  await expect(left).rejects.toThrow("aborted");
  expect(await slow.logged((line) => line.msg === "http")).toMatchObject({ status: 499 });
  const stays = fetch(`${slow.url}/wait`);
  await eventually(() => expect(entered).toBe(2));
  await slow.server.close(100);
  expect((await stays).status).toBe(503);
  expect(ends).toMatchObject([{ name: "AbortError" }, { message: expect.stringContaining("shutting down") }]);
});
