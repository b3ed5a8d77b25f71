import { setTimeout as sleep } from "node:timers/promises";
import { Code, ConnectError, createClient } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { Role } from "../../gen/ts/reeve/options/v1/access_pb.ts";
import { eventually } from "../../testkit/eventually.ts";
import type { Principal } from "../auth/principal.ts";
import { faultDetail } from "../fault/fault.ts";
import { createServiceTransport, type ServiceTransport } from "../rpc-client/transport.ts";
import { Echo } from "./echo.fixture.ts";
import { type EchoServer, startEcho } from "./server.fixture.ts";

const agent: Principal = { id: "a", kind: "agent", roles: [Role.AGENT], name: "a" };

let known: Principal | undefined;
let echo: EchoServer;
let begun: string[];
let aborted: string[];
const open: ServiceTransport[] = [];
/** Waits until the signal, as a handler does that waits for something of its own. */
const untilAborted = async (name: string, signal: AbortSignal) => {
  begun.push(name);
  await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
  aborted.push(name);
};
beforeEach(async () => {
  known = agent;
  begun = [];
  aborted = [];
  echo = await startEcho(
    {
      async say(request, { signal }) {
        if (request.text === "wait") await untilAborted("say", signal);
        return request;
      },
      async *down(_request, { signal }) {
        yield { text: "first" };
        await untilAborted("down", signal);
        yield { text: "too late" };
      },
    },
    {
      authenticate: () => known,
      fallback: async ({ signal }, response) => {
        await untilAborted("plain", signal);
        response.json(202, {});
        return true;
      },
    },
  );
});
afterEach(async () => {
  for (const transport of open.splice(0)) transport.close();
  await echo.server.close(0);
});

describe.each(["connect", "grpc"] as const)("over %s, once the token is revoked", (protocol) => {
  const client = () => {
    const transport = createServiceTransport({ baseUrl: echo.url, token: "agent-token", protocol });
    open.push(transport);
    return createClient(Echo, transport);
  };
  const refusal = async (run: Promise<unknown>) => {
    const error = await run.then(() => undefined, ConnectError.from);
    return [error?.code, faultDetail(error)?.metadata.why];
  };
  const REVOKED = [Code.Unauthenticated, "revoked"];

  test("a stream of answers ends, although it says nothing more", async () => {
    const stream = client().down({})[Symbol.asyncIterator]();
    expect((await stream.next()).value).toMatchObject({ text: "first" });
    known = undefined;
    expect(await refusal(stream.next())).toEqual(REVOKED);
    await eventually(() => expect(aborted).toEqual(["down"]));
  });

  test("a message on an open stream is not taken, and the stream ends", async () => {
    const wanted = Promise.withResolvers<void>();
    async function* requests() {
      yield { text: "before" };
      await wanted.promise;
      yield { text: "after" };
      await sleep(600_000, undefined, { ref: false });
    }
    const stream = client().both(requests())[Symbol.asyncIterator]();
    expect((await stream.next()).value).toMatchObject({ text: "before" });
    known = undefined;
    // Older than what counts as a fresh look, younger than the next one by itself.
    await sleep(150);
    wanted.resolve();
    expect(await refusal(stream.next())).toEqual(REVOKED);
  });

  test("a stream whose caller sends nothing more ends as well", async () => {
    async function* requests() {
      yield { text: "before" };
      await sleep(600_000, undefined, { ref: false });
    }
    const stream = client().both(requests())[Symbol.asyncIterator]();
    await stream.next();
    known = undefined;
    expect(await refusal(stream.next())).toEqual(REVOKED);
  });

  test("a unary RPC that waits ends without its answer", async () => {
    const waiting = refusal(client().say({ text: "wait" }));
    await eventually(() => expect(begun).toEqual(["say"]));
    known = undefined;
    expect(await waiting).toEqual(REVOKED);
    expect(aborted).toEqual(["say"]);
  });

  test("the log says that the caller was refused", async () => {
    const stream = client().down({})[Symbol.asyncIterator]();
    await stream.next();
    known = undefined;
    await refusal(stream.next());
    const line = await echo.logged(({ msg }) => msg === "rpc");
    expect(line).toMatchObject({ code: "unauthenticated", reason: "token_refused", actor: "a" });
  });
});

test("a plain request that waits ends with 401", async () => {
  const waiting = fetch(`${echo.url}/wait`, { headers: { authorization: "Bearer agent-token" } });
  await eventually(() => expect(begun).toEqual(["plain"]));
  known = undefined;
  expect((await waiting).status).toBe(401);
  expect(aborted).toEqual(["plain"]);
});
