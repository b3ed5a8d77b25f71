import { create } from "@bufbuild/protobuf";
import { expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type EventEnvelope, EventEnvelopeSchema } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { reasonOf } from "../fault/fault.ts";
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

test("refuses events while a subscriber is too far behind, and takes them afterwards", async () => {
  const bus = createInProcessBus({ capacity: 2 });
  const inbox = createInbox();
  const release = Promise.withResolvers<void>();
  await bus.subscribe({ subject: "reeve.>", handler: (envelope) => release.promise.then(() => inbox.take(envelope)) });
  await bus.publish([event("a"), event("b")]);
  expect(await bus.publish([event("c")]).catch(reasonOf)).toBe(ErrorReason.NOT_READY);
  release.resolve();
  await inbox.until(2);
  await bus.publish([event("c")]);
  expect(await inbox.until(3)).toEqual(["a", "b", "c"]);
});

test("drops and counts the oldest events of a durable name that nobody takes up again", async () => {
  const lost: unknown[] = [];
  const logger = { warn: () => {}, error: (fields: object) => void lost.push(fields) };
  const bus = createInProcessBus({ capacity: 2, logger });
  await (await bus.subscribe({ subject: "reeve.>", durable: "gone", handler: async () => {} })).close();
  await bus.publish(["a", "b", "c"].map(event));
  expect(bus.status().dropped).toBe(1);
  expect(lost).toMatchObject([{ id: "e-a" }]);
  const inbox = createInbox();
  await bus.subscribe({ subject: "reeve.>", durable: "gone", handler: inbox.take });
  expect(await inbox.until(2)).toEqual(["b", "c"]);
});

test("is heard from the first subscription on, and a durable name is heard while nobody uses it", async () => {
  const bus = createInProcessBus();
  expect(bus.isHeard()).toBe(false);
  const passing = await bus.subscribe({ subject: "reeve.>", handler: async () => undefined });
  expect(bus.isHeard()).toBe(true);
  await passing.close();
  expect(bus.isHeard()).toBe(false);
  const lasting = await bus.subscribe({ subject: "reeve.>", durable: "audit", handler: async () => undefined });
  await lasting.close();
  expect(bus.isHeard()).toBe(true);
  await bus.close();
});
