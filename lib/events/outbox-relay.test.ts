import { randomUUID } from "node:crypto";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { type EventEnvelope, EventEnvelopeSchema } from "../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { eventually } from "../../testkit/eventually.ts";
import { startNatsServer } from "../../testkit/nats-server.ts";
import { reasonOf } from "../fault/fault.ts";
import type { Database } from "../store/database.ts";
import { createGroupCommit, type GroupCommit } from "../store/group-commit.ts";
import { keepLease, type LeaseTables, leaseMigration } from "../store/lease.ts";
import { type NoteTables, noteMigration } from "../store/testdata/notes.ts";
import { SHARED_STORE_KINDS, useStore } from "../store/testdata/stores.ts";
import { busNotReady, type EventBus } from "./bus.ts";
import { createInProcessBus } from "./in-process-bus.ts";
import { createNatsBus } from "./nats-bus.ts";
import { createOutbox, type Outbox, type OutboxTables, outboxMigration } from "./outbox.ts";
import { createOutboxRelay, type OutboxRelay, type OutboxRelayOptions } from "./outbox-relay.ts";
import { createInbox } from "./testdata/inbox.ts";

type Tables = NoteTables & OutboxTables<"test_outbox"> & LeaseTables<"test_leases">;

function event(key: string, more: MessageInitShape<typeof EventEnvelopeSchema> = {}): EventEnvelope {
  const subject = `reeve.test.v1.outbox.${key}`;
  return create(EventEnvelopeSchema, { id: randomUUID(), subject, type: "reeve.test.v1.Noted", actor: key, ...more });
}

describe.each(SHARED_STORE_KINDS)("the relay of an outbox on %s", (kind) => {
  const store = useStore(kind);
  let db: Database<Tables>;
  let writes: GroupCommit<Tables>;
  let outbox: Outbox;

  beforeEach(() => open());

  afterEach(() => writes.close());

  async function open(): Promise<void> {
    db = await store.open<Tables>([noteMigration, outboxMigration("test_outbox"), leaseMigration("test_leases")]);
    writes = createGroupCommit(db);
    outbox = createOutbox(db, "test_outbox");
  }

  /** Only the polling tests wait for a poll. */
  function startRelay(bus: EventBus, more: Partial<OutboxRelayOptions<Tables>> = {}): OutboxRelay {
    return createOutboxRelay({ db, table: "test_outbox", writes, bus, pollMs: 3_600_000, ...more });
  }

  function enqueue(...keys: string[]): Promise<void> {
    return writes.write((trx) =>
      outbox.enqueue(
        trx,
        keys.map((key) => event(key)),
      ),
    );
  }

  test("publishes what a transaction enqueued, in order, and forgets it", async () => {
    const bus = createInProcessBus();
    const inbox = createInbox();
    await bus.subscribe({ subject: "reeve.>", handler: inbox.take });
    const relay = startRelay(bus);
    const keys = Array.from({ length: 600 }, (_, n) => `k${n}`);
    await Promise.all(keys.map((key) => enqueue(key)));
    relay.wake();
    expect(await inbox.until(600)).toEqual(keys);
    await relay.close();
    expect(await outbox.count()).toBe(0);
  });

  test("publishes nothing of a transaction that was rolled back", async () => {
    const bus = createInProcessBus();
    const inbox = createInbox();
    await bus.subscribe({ subject: "reeve.>", handler: inbox.take });
    const undone = writes.write(async (trx) => {
      await trx.insertInto("notes").values({ id: 1, body: new Uint8Array() }).execute();
      await outbox.enqueue(trx, [event("undone")]);
      throw new Error("undo");
    });
    await expect(undone).rejects.toThrow("undo");
    await enqueue("done");
    const relay = startRelay(bus);
    expect(await inbox.until(1)).toEqual(["done"]);
    await relay.close();
  });

  test("refuses to enqueue what no bus would carry, with the whole transaction", async () => {
    const write = writes.write((trx) => outbox.enqueue(trx, [event("fine"), event("bad", { subject: "elsewhere.x" })]));
    expect(await write.catch(reasonOf)).toBe(ErrorReason.INVALID_INPUT);
    expect(await outbox.count()).toBe(0);
  });

  test("finds by itself what no wake-up announced", async () => {
    const bus = createInProcessBus();
    const inbox = createInbox();
    await bus.subscribe({ subject: "reeve.>", handler: inbox.take });
    const relay = startRelay(bus, { pollMs: 5 });
    await enqueue("quiet");
    expect(await inbox.until(1)).toEqual(["quiet"]);
    await relay.close();
  });

  test("keeps events while the bus takes none, in order, and says so once", async () => {
    const warnings: string[] = [];
    const logger = { warn: (_: object, message: string) => void warnings.push(message), error: () => {} };
    const bus = createInProcessBus();
    const inbox = createInbox();
    await bus.subscribe({ subject: "reeve.>", handler: inbox.take });
    let isUp = false;
    const publish: EventBus["publish"] = (envelopes) =>
      isUp ? bus.publish(envelopes) : Promise.reject(busNotReady("not now"));
    const relay = createOutboxRelay({ db, table: "test_outbox", writes, bus: { ...bus, publish }, logger });
    await enqueue("one");
    await enqueue("two");
    relay.wake();
    await expect.poll(() => warnings.length).toBe(1);
    expect(await relay.pending()).toBe(2);
    isUp = true;
    expect(await inbox.until(2)).toEqual(["one", "two"]);
    expect(warnings).toHaveLength(1);
    await relay.close();
  });

  test("publishes after a restart what an earlier process left, under the same ids", async () => {
    const bus = createInProcessBus();
    const inbox = createInbox();
    await bus.subscribe({ subject: "reeve.>", handler: inbox.take });
    await enqueue("left", "behind");
    // As a crash between publishing and forgetting leaves it.
    await bus.publish((await outbox.oldest(1)).map((entry) => entry.envelope));
    await writes.close();
    await open();
    const relay = startRelay(bus);
    expect(await inbox.until(3)).toEqual(["left", "left", "behind"]);
    expect(inbox.envelopes[1]).toEqual(inbox.envelopes[0]);
    await expect.poll(() => relay.pending()).toBe(0);
    await relay.close();
  });

  test("splits what is large into several batches", async () => {
    const bus = createInProcessBus();
    const inbox = createInbox();
    await bus.subscribe({ subject: "reeve.>", handler: inbox.take });
    const keys = Array.from({ length: 12 }, (_, n) => `k${n}`);
    await writes.write((trx) =>
      outbox.enqueue(
        trx,
        keys.map((key) => event(key, { payload: new Uint8Array(500 * 1024) })),
      ),
    );
    const relay = startRelay(bus);
    expect(await inbox.until(12)).toEqual(keys);
    await relay.close();
  });

  test("delivers everything through an outage of NATS", { timeout: 120_000 }, async () => {
    const server = await startNatsServer();
    const bus = await createNatsBus({ servers: [server.url] });
    const inbox = createInbox();
    await bus.subscribe({ subject: "reeve.test.v1.outbox.>", handler: inbox.take });
    const relay = startRelay(bus);
    await enqueue("before");
    relay.wake();
    await inbox.until(1);
    // It arrives before the relay has its answer and deletes the entry.
    await expect.poll(() => relay.pending()).toBe(0);
    await server.kill();
    await enqueue("during", "meanwhile");
    relay.wake();
    expect(await relay.pending()).toBe(2);
    await server.restart();
    await enqueue("after");
    relay.wake();
    await expect
      .poll(() => new Set(inbox.keys), { timeout: 60_000 })
      .toEqual(new Set(["before", "during", "meanwhile", "after"]));
    expect([...new Set(inbox.keys)]).toEqual(["before", "during", "meanwhile", "after"]);
    await relay.close();
    await bus.close();
    await server.close();
  });

  test("publishes only where it holds the lease, and goes on where another one held it", async () => {
    const inbox = createInbox();
    const unowned: string[] = [];
    const leases = ["a", "b"].map((holder) =>
      keepLease({ db, table: "test_leases", name: "relay", holder, renewMs: 10 }),
    );
    const relays = await Promise.all(
      leases.map(async (lease) => {
        const bus = createInProcessBus();
        const take = (envelope: EventEnvelope) => {
          if (!lease.held) unowned.push(envelope.actor);
          return inbox.take(envelope);
        };
        await bus.subscribe({ subject: "reeve.>", handler: take });
        return startRelay(bus, { lease });
      }),
    );
    await eventually(() => expect(leases.filter((lease) => lease.held)).toHaveLength(1));
    const holder = leases.findIndex((lease) => lease.held);
    await enqueue("one", "two");
    relays[1 - holder]?.wake();
    // Time for it to do what it must not.
    await new Promise((resolve) => setTimeout(resolve, 100));
    relays[holder]?.wake();
    expect(await inbox.until(2)).toEqual(["one", "two"]);
    await relays[holder]?.close();
    await enqueue("three");
    await leases[holder]?.close();
    expect(await inbox.until(3)).toEqual(["one", "two", "three"]);
    expect(unowned).toEqual([]);
    await Promise.all([...relays, ...leases].map((each) => each.close()));
  });

  if (kind !== "PostgreSQL") return;

  test("publishes what was committed after an entry with a higher number", async () => {
    const bus = createInProcessBus();
    const inbox = createInbox();
    await bus.subscribe({ subject: "reeve.>", handler: inbox.take });
    const relay = startRelay(bus);
    await db.transaction().execute(async (trx) => {
      await outbox.enqueue(trx, [event("late")]);
      await enqueue("early");
      relay.wake();
      await inbox.until(1);
      await expect.poll(() => relay.pending()).toBe(0);
    });
    relay.wake();
    expect(await inbox.until(2)).toEqual(["early", "late"]);
    await relay.close();
  });
});
