import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault, faultDetail } from "../fault/fault.ts";
import { Echo } from "./echo.fixture.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";
import { transportFor, type Way, ways } from "./transports.fixture.ts";

const boom = (text: string): void => {
  if (text === "boom") throw new Error("password is hunter2");
  if (text === "fault") throw fault(ErrorReason.POLICY_DENIED, { rules: "r1" }, { message: "not today" });
  if (text === "peer") throw new ConnectError("connect ECONNREFUSED 10.0.0.7:7401", Code.Unavailable);
};

let echo: EchoServer;
beforeAll(async () => {
  echo = await startEcho({
    say(request) {
      boom(request.text);
      return request;
    },
    async *down({ text }) {
      yield { text: "first" };
      boom(text);
    },
    async *both(requests) {
      for await (const request of requests) {
        boom(request.text);
        yield request;
      }
    },
  });
});
afterAll(() => echo.server.close(0));

async function failure(action: Promise<unknown>): Promise<ConnectError> {
  return ConnectError.from(
    await action.then(
      () => undefined,
      (error: unknown) => error,
    ),
  );
}

/** Where a test calls in several ways, one after the other. */
type Action = () => Promise<unknown>;

async function drained(messages: AsyncIterable<unknown>): Promise<void> {
  for await (const _ of messages);
}

async function* one(text: string): AsyncGenerator<{ text: string }> {
  yield { text };
}

describe.each(ways)("%s over HTTP/%s in %s", (...way: Way) => {
  const client = (token?: string) => createClient(Echo, transportFor(way, echo.url, token));

  test("an unexpected error says only the request id, which the log has with the cause", async () => {
    for (const action of [() => client().say({ text: "boom" }), () => drained(client().down({ text: "boom" }))]) {
      const error = await failure(action());
      expect(error.code).toBe(Code.Internal);
      expect(JSON.stringify([error.message, [...error.metadata]])).not.toContain("hunter2");
      const requestId = faultDetail(error)?.metadata.request_id;
      const line = await echo.logged((entry) => entry.request_id === requestId && entry.level === "error");
      expect(line).toMatchObject({ err: { message: "password is hunter2" } });
    }
  });

  test("a fault arrives with its code, message and detail", async () => {
    for (const action of [() => client().say({ text: "fault" }), () => drained(client().down({ text: "fault" }))]) {
      const error = await failure(action());
      expect(error).toMatchObject({ code: Code.PermissionDenied, rawMessage: "not today" });
      expect(faultDetail(error)).toMatchObject({ reason: ErrorReason.POLICY_DENIED, metadata: { rules: "r1" } });
    }
  });

  test("another service's bare error does not leak", async () => {
    const error = await failure(client().say({ text: "peer" }));
    expect(faultDetail(error)?.reason).toBe(ErrorReason.INTERNAL);
    expect(error.message).not.toContain("10.0.0.7");
  });

  test("no token, or a wrong one, is unauthenticated", async () => {
    for (const token of ["", "wrong"]) {
      const caller = client(token);
      for (const action of [() => caller.say({}), () => drained(caller.down({})), () => caller.up(one("a"))]) {
        const error = await failure(action());
        expect(error.code).toBe(Code.Unauthenticated);
        expect(faultDetail(error)?.reason).toBe(ErrorReason.UNAUTHENTICATED);
      }
    }
  });

  test("a role that may not call is denied, with the roles that may", async () => {
    const error = await failure(client("agent-token").admin({}));
    expect(error.code).toBe(Code.PermissionDenied);
    expect(faultDetail(error)).toMatchObject({ reason: ErrorReason.ROLE_REQUIRED, metadata: { roles: "operator" } });
    await expect(client("operator-token").admin({ text: "x" })).resolves.toMatchObject({ text: "x" });
  });

  test("an RPC without an access rule has no callers", async () => {
    for (const token of ["agent-token", "operator-token"]) {
      const error = await failure(client(token).forgotten({}));
      expect(faultDetail(error)).toMatchObject({ reason: ErrorReason.ROLE_REQUIRED, metadata: { roles: "" } });
    }
  });

  test("each broken field rule is named as in JSON", async () => {
    const input = { text: "x".repeat(101), maxBytes: -1, inner: { words: ["ok", ""] } };
    for (const action of [() => client().say(input), () => drained(client().down(input))]) {
      const error = await failure(action());
      expect(error.code).toBe(Code.InvalidArgument);
      expect(faultDetail(error)).toMatchObject({
        reason: ErrorReason.INVALID_INPUT,
        metadata: { field: "text", rule: "string.max_len" },
      });
      expect(faultDetail(error)?.violations.map(({ field }) => field)).toEqual(["text", "maxBytes", "inner.words[1]"]);
    }
  });

  test("a later message of a stream is validated too", async () => {
    async function* messages(): AsyncGenerator<{ text: string }> {
      yield { text: "good" };
      yield { text: "x".repeat(101) };
    }
    const actions: Action[] = [() => client().up(messages())];
    if (way[1] === "2") actions.push(() => drained(client().both(messages())));
    for (const action of actions) expect(faultDetail(await failure(action()))?.metadata.field).toBe("text");
  });

  test("a message over the limit is INPUT_TOO_LARGE", async () => {
    const error = await failure(client().say({ data: { blob: "x".repeat(5 * 1024 * 1024) } }));
    expect(faultDetail(error)).toMatchObject({ reason: ErrorReason.INPUT_TOO_LARGE, metadata: { limit: "4194304" } });
  });

  test("a deadline longer than the server allows is refused", async () => {
    const error = await failure(client().say({ text: "x" }, { timeoutMs: 4_000_000 }));
    expect(error.code).toBe(Code.InvalidArgument);
    expect(error.message).toContain("timeout");
  });
});

test.each<Way>([
  ["connect", "1.1", "json"],
  ["connect", "2", "binary"],
  ["grpc", "2", "binary"],
])("%s over HTTP/%s in %s: 50 MB are refused, and the connection goes on", async (...way: Way) => {
  const client = createClient(Echo, transportFor(way, echo.url));
  const error = await failure(client.say({ data: { blob: "x".repeat(50 * 1024 * 1024) } }));
  expect(faultDetail(error)?.reason).toBe(ErrorReason.INPUT_TOO_LARGE);
  await expect(client.say({ text: "still here" })).resolves.toMatchObject({ text: "still here" });
});

test("a caller without a token is refused before it has sent its body", async () => {
  const neverSent = new Promise<{ text: string }>(() => undefined);
  async function* messages(): AsyncGenerator<{ text: string }> {
    yield await neverSent;
  }
  const transport = transportFor(["grpc", "2", "binary"], echo.url, "");
  expect((await failure(createClient(Echo, transport).up(messages()))).code).toBe(Code.Unauthenticated);
});

test("what is refused before the handler is logged with who, what and why", async () => {
  const transport = transportFor(["connect", "2", "binary"], echo.url);
  const error = await failure(createClient(Echo, transport).say({ data: { blob: "x".repeat(5 * 1024 * 1024) } }));
  const requestId = error.metadata.get("x-request-id");
  expect(await echo.logged((line) => line.request_id === requestId)).toMatchObject({
    actor: "agent-1",
    code: "invalid_argument",
    reason: "input_too_large",
  });
});

test("a caller's own request id is kept where it is sane, and replaced where it is not", async () => {
  const idOf = async (given: string): Promise<string | null> => {
    const headers = { authorization: "Bearer agent-token", "content-type": "application/json", "x-request-id": given };
    const answer = await fetch(`${echo.url}/reeve.test.v1.Echo/Say`, { method: "POST", headers, body: "{}" });
    return answer.headers.get("x-request-id");
  };
  expect(await idOf("run-17/3".replace("/", "."))).toBe("run-17.3");
  for (const odd of ["x", "a b c d e f", "{injected}", "y".repeat(65)]) {
    expect(await idOf(odd)).toMatch(/^[0-9a-f-]{36}$/);
  }
});
