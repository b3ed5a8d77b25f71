import { randomUUID } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type EventEnvelope, EventEnvelopeSchema } from "../../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { reasonOf } from "../../fault/fault.ts";
import type { EventBus, EventLogger } from "../bus.ts";
import { createInbox } from "./inbox.ts";

/** What every event bus must do, whatever carries its events. `createBus` gives a fresh client of one and the same bus. */
export function eventBusConformance(name: string, createBus: (logger?: EventLogger) => Promise<EventBus>): void {
  describe(name, () => {
    let bus: EventBus;
    /** Tests share a bus, so each has its own corner of the subjects. */
    let corner: string;

    beforeEach(async () => {
      bus = await createBus();
      corner = `reeve.test.v1.c${randomUUID().replaceAll("-", "")}`;
    });

    afterEach(() => bus.close());

    const event = (key: string, more: MessageInitShape<typeof EventEnvelopeSchema> = {}): EventEnvelope =>
      create(EventEnvelopeSchema, {
        id: randomUUID(),
        subject: `${corner}.${key}`,
        type: "reeve.test.v1.Noted",
        actor: key,
        ...more,
      });
    const events = (...keys: string[]) => keys.map((key) => event(key));

    test("delivers an event as it was published", async () => {
      const inbox = createInbox();
      await bus.subscribe({ subject: `${corner}.>`, handler: inbox.take });
      const sent = event("a", { time: timestampFromMs(1234), traceId: "t", payload: new Uint8Array([0, 255]) });
      await bus.publish([sent]);
      expect(await inbox.until(1)).toEqual(["a"]);
      expect(inbox.envelopes).toEqual([sent]);
    });

    test("delivers to every subscriber whose pattern matches, and to no other", async () => {
      const patterns = [`${corner}.a.x`, `${corner}.*.x`, `${corner}.>`, `${corner}.*`];
      const inboxes = patterns.map(() => createInbox((envelope) => envelope.subject.slice(corner.length + 1)));
      for (const [i, subject] of patterns.entries()) {
        await bus.subscribe({ subject, handler: inboxes[i]?.take ?? (() => Promise.reject()) });
      }
      await bus.publish(events("a.x", "b.x", "a.y", "a.x.deeper", "last", "a.x"));
      const wanted = [
        ["a.x", "a.x"],
        ["a.x", "b.x", "a.x"],
        ["a.x", "b.x", "a.y", "a.x.deeper", "last", "a.x"],
        ["last"],
      ];
      const got = await Promise.all(inboxes.map((inbox, i) => inbox.until(wanted[i]?.length ?? 0)));
      expect(got).toEqual(wanted);
    });

    test("keeps the order of each publisher", async () => {
      const inbox = createInbox();
      await bus.subscribe({ subject: `${corner}.>`, handler: inbox.take });
      const publisher = async (letter: string) => {
        for (let n = 0; n < 40; n += 4) await bus.publish(events(...[0, 1, 2, 3].map((i) => `${letter}${n + i}`)));
      };
      await Promise.all([publisher("a"), publisher("b")]);
      const got = await inbox.until(80);
      for (const letter of ["a", "b"]) {
        const order = got.filter((key) => key.startsWith(letter));
        expect(order).toEqual(Array.from({ length: 40 }, (_, n) => `${letter}${n}`));
      }
    });

    test("delivers nothing from before the subscription", async () => {
      await bus.publish(events("before"));
      const inbox = createInbox();
      await bus.subscribe({ subject: `${corner}.>`, handler: inbox.take });
      await bus.publish(events("after"));
      expect(await inbox.until(1)).toEqual(["after"]);
    });

    test("goes on with the next event when a handler fails, and says so", async () => {
      const errors: object[] = [];
      const own = await createBus({ warn: () => {}, error: (fields) => void errors.push(fields) });
      const inbox = createInbox();
      const handler = async (envelope: EventEnvelope) => {
        await inbox.take(envelope);
        if (envelope.actor === "poison") throw new Error("never");
      };
      await own.subscribe({ subject: `${corner}.>`, handler });
      await own.publish(events("first", "poison", "last"));
      expect(await inbox.until(3)).toEqual(["first", "poison", "last"]);
      expect(errors).toEqual([{ err: new Error("never"), subject: `${corner}.>` }]);
      await own.close();
    });

    test("finishes the event in hand before a subscription is closed, and delivers none after it", async () => {
      const started = Promise.withResolvers<void>();
      const release = Promise.withResolvers<void>();
      const done: string[] = [];
      const subscription = await bus.subscribe({
        subject: `${corner}.>`,
        handler: async ({ actor }) => {
          started.resolve();
          await release.promise;
          done.push(actor);
        },
      });
      const inbox = createInbox();
      await bus.subscribe({ subject: `${corner}.>`, handler: inbox.take });
      await bus.publish(events("slow", "waiting"));
      await started.promise;
      const closed = subscription.close().then(() => done.push("closed"));
      release.resolve();
      await closed;
      await bus.publish(events("late"));
      await inbox.until(3);
      expect(done).toEqual(["slow", "closed"]);
    });

    test("lets a handler publish", async () => {
      const inbox = createInbox();
      await bus.subscribe({ subject: `${corner}.question`, handler: () => bus.publish(events("answer")) });
      await bus.subscribe({ subject: `${corner}.answer`, handler: inbox.take });
      await bus.publish(events("question"));
      expect(await inbox.until(1)).toEqual(["answer"]);
    });

    test("gives each handler an envelope of its own", async () => {
      const inbox = createInbox();
      const spoiled = createInbox();
      await bus.subscribe({
        subject: `${corner}.>`,
        handler: (envelope) => {
          envelope.actor = "spoiled";
          return spoiled.take(envelope);
        },
      });
      await bus.subscribe({ subject: `${corner}.>`, handler: inbox.take });
      await bus.publish(events("clean"));
      expect(await spoiled.until(1)).toEqual(["spoiled"]);
      expect(await inbox.until(1)).toEqual(["clean"]);
    });

    test("takes none of a batch that holds an event it cannot carry", async () => {
      const inbox = createInbox();
      await bus.subscribe({ subject: `${corner}.>`, handler: inbox.take });
      const bad = [
        event("x", { id: "" }),
        event("x", { subject: "elsewhere.x" }),
        event("x", { subject: `${corner}.*` }),
      ];
      for (const envelope of bad) {
        const refused = await bus.publish([event("beside"), envelope]).catch(reasonOf);
        expect(refused).toBe(ErrorReason.INVALID_INPUT);
      }
      const large = await bus.publish([event("x", { payload: new Uint8Array(512 * 1024 + 1) })]).catch(reasonOf);
      expect(large).toBe(ErrorReason.INPUT_TOO_LARGE);
      await bus.publish([event("largest", { payload: new Uint8Array(512 * 1024) })]);
      expect(await inbox.until(1)).toEqual(["largest"]);
    });

    test("refuses a subscription to what is no pattern", async () => {
      const handler = async () => {};
      for (const subject of ["elsewhere.>", "reeve.>.x", "reeve..x", "reeve.a b", ""]) {
        await expect(bus.subscribe({ subject, handler })).rejects.toThrow("no subject pattern");
      }
    });

    test("says that it is not ready once it is closed", async () => {
      expect(bus.status().connected).toBe(true);
      await bus.close();
      expect(bus.status().connected).toBe(false);
      expect(await bus.publish(events("late")).catch(reasonOf)).toBe(ErrorReason.NOT_READY);
    });
  });
}
