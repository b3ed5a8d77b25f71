import { once } from "node:events";
import { createServer, type Server } from "node:net";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type EventEnvelope, EventEnvelopeSchema } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { eventually } from "../../testkit/eventually.ts";
import { freePorts } from "../../testkit/free-port.ts";
import { startNatsServer } from "../../testkit/nats-server.ts";
import { reasonOf } from "../fault/fault.ts";
import type { EventBus } from "./bus.ts";
import { createNatsBus } from "./nats-bus.ts";
import type { NatsOptions } from "./nats-connection.ts";
import { createInbox } from "./testdata/inbox.ts";

let parts: AsyncDisposableStack;
let port: number;
const lines: string[] = [];
const logger = {
  warn: (fields: object, text: string) => void lines.push(`warn ${text} ${JSON.stringify(fields)}`),
  error: (_: object, text: string) => void lines.push(`error ${text}`),
};
beforeEach(async () => {
  parts = new AsyncDisposableStack();
  [port = 0] = await freePorts(1);
  lines.length = 0;
});
afterEach(() => parts.disposeAsync());

const here = () => ({ servers: [`127.0.0.1:${port}`], logger });

async function openBus(options: Partial<NatsOptions> = {}): Promise<EventBus> {
  const bus = await createNatsBus({ ...here(), ...options });
  parts.defer(() => bus.close());
  return bus;
}

/** Starts a server at the port where it was expected. */
async function startServer(...args: string[]) {
  const server = await startNatsServer({ args: ["-p", String(port), ...args] });
  parts.defer(() => server.close());
  return server;
}

/** Something that answers as a NATS server of that kind does, and no request. */
async function pretend(info: { version: string; jetstream: boolean }, { answers = true } = {}): Promise<Server> {
  const server = createServer((socket) => {
    const said = { server_id: "x", proto: 1, headers: true, max_payload: 1_048_576, host: "127.0.0.1", port, ...info };
    socket.write(`INFO ${JSON.stringify(said)}\r\n`);
    socket.on("error", () => undefined);
    socket.on("data", (data) => answers && data.includes("PING\r\n") && socket.write("PONG\r\n"));
  });
  server.listen(port, "127.0.0.1");
  await once(server, "listening");
  parts.defer(() => void server.close());
  return server;
}

const event = (key: string): EventEnvelope =>
  create(EventEnvelopeSchema, {
    id: `e-${key}`,
    subject: `reeve.test.v1.early.${key}`,
    type: "reeve.test.v1.Noted",
    actor: key,
  });

describe("where no server listens yet", () => {
  test("the bus starts, says that it is degraded, and takes no events", async () => {
    const bus = await openBus();
    expect(bus.status()).toMatchObject({ connected: false, server: "" });
    expect(bus.status().degraded).toEqual([expect.stringContaining(`cannot connect to NATS at 127.0.0.1:${port}`)]);
    expect(lines).toEqual([expect.stringMatching(/^warn nats unreachable .*cannot connect to NATS/)]);
    expect(await bus.publish([event("a")]).catch(reasonOf)).toBe(ErrorReason.NOT_READY);
  });

  test("the bus connects when it comes, and subscriptions receive what is published from then on", async () => {
    const bus = await openBus();
    const inbox = createInbox();
    await bus.subscribe({ subject: "reeve.test.v1.early.>", handler: inbox.take });
    await startServer();
    // As an outbox does, which does not wait for the subscriptions.
    await eventually(() => bus.publish([event("first")]));
    expect(bus.status()).toMatchObject({ connected: true, server: expect.stringMatching(/^\d/) });
    expect(bus.status().degraded.join()).not.toContain("cannot connect");
    expect(await inbox.until(1)).toEqual(["first"]);
  });

  test("one that comes and refuses is tried again until it does not, and the bus says why", async () => {
    let pass = "wrong";
    const bus = await openBus({ user: "reeve", pass: () => pass });
    await startServer("--user", "reeve", "--pass", "s3cret");
    await eventually(() => expect(bus.status().degraded.join()).toContain("Authorization Violation"));
    expect(lines.filter((line) => line.startsWith("error"))).toHaveLength(1);
    pass = "s3cret";
    await eventually(() => expect(bus.status().connected).toBe(true));
  });

  test("JetStream that is not ready yet counts as unreachable", async () => {
    await pretend({ version: "2.10.0", jetstream: true });
    const bus = await openBus({ timeoutMs: 200 });
    expect(bus.status().degraded).toEqual([expect.stringContaining("JetStream is not ready")]);
  });
});

describe("where a server answers that cannot be used, the start fails", () => {
  test("because it is too old", async () => {
    await pretend({ version: "2.8.4", jetstream: true });
    await expect(openBus()).rejects.toThrow("2.9 or later");
  });

  test("because it has no JetStream", async () => {
    await pretend({ version: "2.10.0", jetstream: false });
    await expect(openBus({ timeoutMs: 200 })).rejects.toThrow("does not offer JetStream");
  });

  test("because it wants another login", async () => {
    await startServer("--user", "reeve", "--pass", "s3cret");
    await expect(openBus({ user: "reeve", pass: "wrong" })).rejects.toThrow(/Authorization Violation/i);
  });

  test("because it says hello and then no more", async () => {
    await pretend({ version: "2.10.0", jetstream: true }, { answers: false });
    expect(await openBus({ timeoutMs: 200 }).catch(reasonOf)).toBe(ErrorReason.NOT_READY);
  });
});

test("a password that was replaced is used when the connection is made anew", async () => {
  let pass = "old";
  const first = await startServer("--user", "reeve", "--pass", "old");
  const bus = await openBus({ user: "reeve", pass: () => pass });
  await bus.publish([event("before")]);
  await first.close();
  pass = "new";
  await startServer("--user", "reeve", "--pass", "new");
  await eventually(() => bus.publish([event("after")]));
});
