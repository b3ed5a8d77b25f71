import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { type EventEnvelope, EventEnvelopeSchema } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { createInProcessBus } from "./in-process-bus.ts";
import { eventBusConformance } from "./testdata/conformance.ts";
import { createInbox } from "./testdata/inbox.ts";

eventBusConformance("in-process bus", async (logger) => createInProcessBus(logger ? { logger } : {}));

function event(key: string): EventEnvelope {
  return create(EventEnvelopeSchema, {
    id: `e-${key}`,
    subject: `reeve.test.v1.${key}`,
    type: "reeve.test.v1.Noted",
    actor: key,
  });
}

test("delivers nothing inside the publisher's own call", async () => {
  const bus = createInProcessBus();
  const inbox = createInbox();
  await bus.subscribe({ subject: "reeve.>", handler: inbox.take });
  await bus.publish([event("a")]);
  expect(inbox.keys).toEqual([]);
  expect(await inbox.until(1)).toEqual(["a"]);
});

test("drops what a subscriber is too far behind for, says so once, and goes on", async () => {
  const errors: string[] = [];
  const bus = createInProcessBus({ logger: { warn: () => {}, error: (_, message) => void errors.push(message) } });
  const inbox = createInbox();
  const release = Promise.withResolvers<void>();
  await bus.subscribe({ subject: "reeve.>", handler: (envelope) => release.promise.then(() => inbox.take(envelope)) });
  await bus.publish(Array.from({ length: 10_002 }, (_, n) => event(String(n))));
  release.resolve();
  await inbox.until(10_000);
  await bus.publish([event("next")]);
  const keys = await inbox.until(10_001);
  expect(keys.slice(-2)).toEqual(["9999", "next"]);
  expect(errors).toEqual(["subscriber too far behind, events dropped"]);
});

test("has subscribers from the first subscription until the last is closed", async () => {
  const bus = createInProcessBus();
  expect(bus.hasSubscribers()).toBe(false);
  const subscription = await bus.subscribe({ subject: "reeve.>", handler: async () => undefined });
  expect(bus.hasSubscribers()).toBe(true);
  await subscription.close();
  expect(bus.hasSubscribers()).toBe(false);
});
