import { create, fromBinary } from "@bufbuild/protobuf";
import { connect } from "nats";
import { afterAll, beforeAll, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type EventEnvelope, EventEnvelopeSchema } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { type NatsServer, startNatsServer } from "../../testkit/nats-server.ts";
import { reasonOf } from "../fault/fault.ts";
import type { EventBus } from "./bus.ts";
import { createNatsBus } from "./nats-bus.ts";
import { STREAM } from "./nats-stream.ts";
import { eventBusConformance } from "./testdata/conformance.ts";
import { createInbox } from "./testdata/inbox.ts";

let server: NatsServer;

beforeAll(async () => {
  server = await startNatsServer();
}, 120_000);

afterAll(() => server.close());

eventBusConformance("NATS bus", (logger) => createNatsBus({ servers: [server.url], ...(logger ? { logger } : {}) }));

let counter = 0;

function event(corner: string, key: string): EventEnvelope {
  const id = `${corner}-${key}-${counter++}`;
  return create(EventEnvelopeSchema, {
    id,
    subject: `reeve.test.v1.${corner}.${key}`,
    type: "reeve.test.v1.Noted",
    actor: key,
  });
}

/** As the outbox relay does: the same again until the bus has it. */
async function publishUntilTaken(bus: EventBus, envelope: EventEnvelope): Promise<void> {
  for (;;) {
    const taken = await bus
      .publish([envelope])
      .then(() => true)
      .catch(() => false);
    if (taken) return;
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}

/** The keys of what the server's stream holds, in its order. */
async function keysInStream(url: string): Promise<string[]> {
  const nc = await connect({ servers: url });
  const jsm = await nc.jetstreamManager();
  const { state } = await jsm.streams.info(STREAM);
  const keys: string[] = [];
  for (let seq = state.first_seq; seq <= state.last_seq; seq++) {
    const { data } = await jsm.streams.getMessage(STREAM, { seq });
    keys.push(fromBinary(EventEnvelopeSchema, data).actor);
  }
  await nc.close();
  return keys;
}

describe("NATS bus and its server", () => {
  test("says what the server lacks", async () => {
    const bus = await createNatsBus({ servers: [server.url] });
    const status = bus.status();
    expect(status).toMatchObject({ connected: true, server: expect.stringMatching(/^\d+\.\d+\.\d+/) });
    if (status.server.startsWith("2.9.")) expect(status.degraded[0]).toMatch(/a power cut loses some/);
    await bus.close();
  });

  test("logs in with a user and a password, and rejects a wrong one", async () => {
    const guarded = await startNatsServer({ args: ["--user", "reeve", "--pass", "s3cret"] });
    const login = { servers: [guarded.url], user: "reeve" };
    const bus = await createNatsBus({ ...login, pass: "s3cret" });
    expect(bus.status().connected).toBe(true);
    await bus.close();
    await expect(createNatsBus({ ...login, pass: "wrong" })).rejects.toThrow(/Authorization Violation/i);
    await guarded.close();
  });

  test("keeps what it took, once and in order, when the server is killed and started again", {
    timeout: 60_000,
  }, async () => {
    const own = await startNatsServer();
    const bus = await createNatsBus({ servers: [own.url] });
    const inbox = createInbox();
    await bus.subscribe({ subject: "reeve.test.v1.crash.>", handler: inbox.take });
    const keys = Array.from({ length: 300 }, (_, n) => `k${n}`);
    let restarts: Promise<void> = Promise.resolve();
    for (const key of keys) {
      if (key === "k100" || key === "k200") restarts = restarts.then(() => own.restart());
      await publishUntilTaken(bus, event("crash", key));
    }
    await restarts;
    expect(await keysInStream(own.url)).toEqual(keys);
    // The subscription came back with the connection.
    while (!inbox.keys.includes("k299")) await inbox.until(inbox.keys.length + 1);
    await bus.close();
    await own.close();
  });

  test("stores an event once, however often it is published", async () => {
    const own = await startNatsServer();
    const bus = await createNatsBus({ servers: [own.url] });
    const repeated = event("repeated", "a");
    await bus.publish([repeated, repeated]);
    await bus.publish([repeated, event("repeated", "b")]);
    expect(await keysInStream(own.url)).toEqual(["a", "b"]);
    await bus.close();
    await own.close();
  });

  test("refuses to publish while the server is down, and closes all the same", async () => {
    const own = await startNatsServer();
    const bus = await createNatsBus({ servers: [own.url] });
    await bus.subscribe({ subject: "reeve.>", handler: async () => {} });
    await own.kill();
    await expect.poll(() => bus.status().connected).toBe(false);
    expect(await bus.publish([event("down", "a")]).catch(reasonOf)).toBe(ErrorReason.NOT_READY);
    await bus.close();
    await own.close();
  });

  test("makes its stream again, and goes on, when the server lost its disk", { timeout: 60_000 }, async () => {
    const own = await startNatsServer();
    const bus = await createNatsBus({ servers: [own.url] });
    const inbox = createInbox();
    await bus.subscribe({ subject: "reeve.test.v1.disk.>", handler: inbox.take });
    await bus.publish([event("disk", "before")]);
    await inbox.until(1);
    await own.close();
    const replacement = await startNatsServer({ args: ["-p", String(own.port)] });
    await publishUntilTaken(bus, event("disk", "after"));
    // The server hands an event to subscribers also where it has no stream to keep it: then it comes again, under its id.
    expect([...new Set(await inbox.until(2))]).toEqual(["before", "after"]);
    await bus.close();
    await replacement.close();
  });

  test("drops what is no envelope and goes on", async () => {
    const errors: object[] = [];
    const logger = { warn: () => {}, error: (fields: object) => void errors.push(fields) };
    const bus = await createNatsBus({ servers: [server.url], logger });
    const stranger = await connect({ servers: server.url });
    const inbox = createInbox();
    await bus.subscribe({ subject: "reeve.test.v1.strange.>", handler: inbox.take });
    stranger.publish("reeve.test.v1.strange.x", new Uint8Array([255, 255, 255]));
    await stranger.flush();
    await bus.publish([event("strange", "fine")]);
    expect(await inbox.until(1)).toEqual(["fine"]);
    expect(errors).toEqual([{ err: expect.any(Error), subject: "reeve.test.v1.strange.>" }]);
    await stranger.close();
    await bus.close();
  });
});
