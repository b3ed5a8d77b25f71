import type { ServerResponse } from "node:http";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { MatrixSendRequestSchema } from "../../../gen/ts/reeve/tools/v1/matrix_pb.ts";
import { createMatrixTools } from "./matrix.ts";
import { createTestContext, faultOf, type TestContext } from "./testing/context.ts";
import { startWebServer, type WebServer } from "./testing/web-server.ts";

const VALUE = "syt_0123456789abcdef";
const HANDLE = ["$", "{secret:MATRIX}"].join("");
const PATH = /^\/_matrix\/client\/v3\/rooms\/!room%3Aexample\.org\/send\/m\.room\.message\/(reeve-[0-9a-f]{32})$/;

/** A homeserver: an event for each transaction id that it has not seen, as the specification asks of it. */
let homeserver: WebServer;
let events: Map<string, string>;
/** What it answers with in place of an event, in order. */
let failures: ((response: ServerResponse) => void)[];
let test1: TestContext;

beforeEach(async () => {
  events = new Map();
  failures = [];
  homeserver = await startWebServer(({ path, body }, response) => {
    const [, transaction = ""] = PATH.exec(path) ?? [];
    const failure = failures.shift();
    // Also where the answer is lost.
    if (transaction !== "" && !events.has(transaction)) events.set(transaction, body);
    if (failure !== undefined) failure(response);
    else if (transaction === "") response.writeHead(404).end("{}");
    else response.end(JSON.stringify({ event_id: `$${[...events.keys()].indexOf(transaction)}` }));
  });
  test1 = createTestContext({
    hosts: [`127.0.0.1:${homeserver.port}`],
    secrets: new Map([["MATRIX", { value: VALUE, hosts: ["127.0.0.1"] }]]),
  });
});
afterEach(async () => {
  test1[Symbol.dispose]();
  await homeserver[Symbol.asyncDispose]();
});

const send = (
  more: { text?: string; html?: string; notice?: boolean; roomId?: string } = {},
  context = test1.context,
) =>
  createMatrixTools().send(
    create(MatrixSendRequestSchema, {
      homeserver: homeserver.origin,
      accessToken: HANDLE,
      roomId: "!room:example.org",
      text: "done",
      ...more,
    }),
    context,
  );

describe("matrix.send", () => {
  test("sends a message with the token that the device keeps", async () => {
    expect(await send({ html: "<b>done</b>", notice: true })).toEqual({ eventId: "$0", tries: 1 });
    const [{ method, headers, body } = { method: "", headers: {}, body: "" }] = homeserver.asked;
    expect([method, headers.authorization]).toEqual(["PUT", `Bearer ${VALUE}`]);
    const formatted = { format: "org.matrix.custom.html", formatted_body: "<b>done</b>" };
    expect(JSON.parse(body)).toEqual({ msgtype: "m.notice", body: "done", ...formatted });
  });

  test("tries again under one transaction id, so that the room gets the message once", async () => {
    failures = [
      (response) => response.destroy(),
      (response) => response.writeHead(429).end(JSON.stringify({ errcode: "M_LIMIT_EXCEEDED", retry_after_ms: 5 })),
      (response) => response.writeHead(503, { "retry-after": "0" }).end("busy"),
    ];
    expect(await send()).toEqual({ eventId: "$0", tries: 4 });
    expect(new Set(homeserver.asked.map(({ path }) => path)).size).toBe(1);
    expect([...events.values()]).toEqual(['{"msgtype":"m.text","body":"done"}']);
  });

  test("takes another transaction id for another call", async () => {
    await send();
    await send({}, { ...test1.context, callId: "another" });
    expect(events.size).toBe(2);
  });

  test("says why the homeserver refuses, at once", async () => {
    failures = [
      (response) => response.writeHead(403).end(JSON.stringify({ errcode: "M_FORBIDDEN", error: "not in room" })),
    ];
    const { reason, metadata, message } = await faultOf(send());
    expect([reason, metadata]).toEqual([ErrorReason.TOOL_FAILED, { status: "403", errcode: "M_FORBIDDEN" }]);
    expect(message).toContain("not in room");
    expect(homeserver.asked).toHaveLength(1);
  });

  test("stops to try when its call ends", async () => {
    failures = Array.from({ length: 100 }, () => (response: ServerResponse) => response.writeHead(502).end());
    const stopped = new AbortController();
    const running = faultOf(send({}, { ...test1.context, signal: stopped.signal }));
    while (homeserver.asked.length === 0) await new Promise((resolve) => setTimeout(resolve, 5));
    stopped.abort();
    expect([ErrorReason.CANCELED, ErrorReason.TIMED_OUT]).toContain((await running).reason);
    expect(homeserver.asked).toHaveLength(1);
  });

  test("sends the token to no other host", async () => {
    using elsewhere = createTestContext({
      hosts: [`127.0.0.1:${homeserver.port}`],
      secrets: new Map([["MATRIX", { value: VALUE, hosts: ["matrix.example.org"] }]]),
    });
    expect((await faultOf(send({}, elsewhere.context))).reason).toBe(ErrorReason.SECRET_REFUSED);
    expect(homeserver.asked).toEqual([]);
  });
});
