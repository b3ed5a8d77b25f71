import { createSecretKey } from "node:crypto";
import { fromBinary, type JsonObject } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test, vi } from "vitest";
import { CallEndedSchema } from "../../../gen/ts/reeve/call/v1/call_events_pb.ts";
import { CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import type { EventEnvelope } from "../../../gen/ts/reeve/event/v1/envelope_pb.ts";
import { createOutbox } from "../../../lib/events/outbox.ts";
import { sealerWith } from "../../../lib/identity/sealer.ts";
import type { Database } from "../../../lib/store/database.ts";
import { createGroupCommit, type GroupCommit } from "../../../lib/store/group-commit.ts";
import { STORE_KINDS, useStore } from "../../../lib/store/testdata/stores.ts";
import { testCall } from "../../../testkit/test-call.ts";
import { type RegistryTables, registryMigrations } from "../tables.ts";
import { createBodies } from "./bodies.ts";
import { callEndedEvent } from "./call-ended.ts";
import type { GovernedCall } from "./governed-call.ts";
import { type CallStore, createCallStore } from "./store.ts";

const bodies = createBodies(sealerWith(createSecretKey(Buffer.alloc(32, 7))));

describe.each(STORE_KINDS)("calls on %s", (kind) => {
  const place = useStore(kind);
  let db: Database<RegistryTables>;
  let writes: GroupCommit<RegistryTables>;
  let store: CallStore;
  beforeEach(async () => {
    db = await place.open<RegistryTables>(registryMigrations);
    writes = createGroupCommit(db);
    store = createCallStore({ db, writes, outbox: createOutbox(db, "registry_outbox"), bodies });
  });
  afterEach(() => writes.close());

  test("keeps a call's output, and leaves it out of lists", async () => {
    const output: JsonObject = { stdout: "é\u0000\ud800", list: [1, null, { deep: true }] };
    const call = testCall({ id: "c", tool: "exec", state: CallState.RECEIVED });
    await store.insert(call, { args: Buffer.from("{}") });
    await store.finish(testCall({ id: "c", tool: "exec", state: CallState.SUCCEEDED, output }), undefined, []);
    const whole = (await store.get("c"))?.call;
    expect(whole).toMatchObject({ id: "c", spec: { tool: "exec" }, status: { state: CallState.SUCCEEDED, output } });
    const [listed] = (await store.list({ limit: 10 })).calls;
    expect(listed?.call).toMatchObject({ id: "c", spec: { tool: "exec" }, status: { state: CallState.SUCCEEDED } });
    expect(listed?.call.status.output).toBeUndefined();
  });

  test("has no output for a call that ended without one", async () => {
    const call = testCall({ id: "c", state: CallState.RECEIVED });
    await store.insert(call, { args: Buffer.from("{}") });
    await store.finish(testCall({ id: "c", state: CallState.DENIED }), undefined, []);
    expect((await store.get("c"))?.call.status.output).toBeUndefined();
  });

  const unpack = ({ payload }: EventEnvelope) => {
    const { callId, state } = fromBinary(CallEndedSchema, payload);
    return { callId, state };
  };
  const NO_ARGUMENTS = { args: Buffer.from("{}") };
  const received = (id: string) => testCall({ id, state: CallState.RECEIVED });
  const ended = (id: string) => testCall({ id, state: CallState.SUCCEEDED });

  test("lets a call wait for its decision where policy writes to the same database, and nowhere else", async () => {
    const along = vi.spyOn(writes, "writeRowAlong");
    const outbox = createOutbox(db, "registry_outbox");
    const shared = createCallStore({ db, writes, outbox, bodies, sharesWithPolicy: true });
    const decided = Promise.withResolvers<void>();
    const inserted = [shared.insert(received("a"), NO_ARGUMENTS, decided.promise)];
    expect(along).toHaveBeenCalledOnce();
    inserted.push(store.insert(received("b"), NO_ARGUMENTS, decided.promise));
    inserted.push(shared.insert(received("c"), NO_ARGUMENTS));
    expect(along).toHaveBeenCalledOnce();
    decided.resolve();
    expect(await Promise.all(inserted)).toEqual([true, true, true]);
    expect(await shared.insert(received("a"), NO_ARGUMENTS, decided.promise)).toBe(false);
  });

  test("inserts a call once, also where it comes twice at the same time, and lists them in the order they came", async () => {
    const inserted = ["a", "b", "a", "c"].map((id) => store.insert(received(id), NO_ARGUMENTS));
    expect(await Promise.all(inserted)).toEqual([true, true, false, true]);
    expect(await store.insert(received("b"), NO_ARGUMENTS)).toBe(false);
    const { calls } = await store.list({ limit: 10 });
    expect(calls.map(({ call }) => call.id)).toEqual(["c", "b", "a"]);
  });

  test("ends each call once, by the first end, with the events of that end only", async () => {
    await Promise.all(["a", "b", "c"].map((id) => store.insert(received(id), NO_ARGUMENTS)));
    const finish = (id: string, state: CallState) => {
      const call: GovernedCall = testCall({ id, state, principalId: "ann" });
      return store.finish(call, Buffer.from(`outcome of ${id}`), [callEndedEvent(call, state, 0)]);
    };
    const ends = [
      finish("a", CallState.SUCCEEDED),
      finish("b", CallState.FAILED),
      finish("a", CallState.CANCELED),
      finish("unknown", CallState.SUCCEEDED),
      finish("c", CallState.CANCELED),
    ];
    expect(await Promise.all(ends)).toEqual([true, true, false, false, true]);
    const states = await Promise.all(["a", "b", "c"].map(async (id) => (await store.get(id))?.call.status.state));
    expect(states).toEqual([CallState.SUCCEEDED, CallState.FAILED, CallState.CANCELED]);
    const published = (await createOutbox(db, "registry_outbox").oldest(10)).map(({ envelope }) => unpack(envelope));
    expect(published).toEqual([
      { callId: "a", state: CallState.SUCCEEDED },
      { callId: "b", state: CallState.FAILED },
      { callId: "c", state: CallState.CANCELED },
    ]);
  });

  test("saves the states of one call in their order, and none over its end", async () => {
    await Promise.all([store.insert(received("a"), NO_ARGUMENTS), store.insert(received("b"), NO_ARGUMENTS)]);
    const saved = [
      store.save(testCall({ id: "a", state: CallState.QUEUED })),
      store.save(testCall({ id: "b", state: CallState.QUEUED })),
      store.save(testCall({ id: "a", state: CallState.DISPATCHED })),
      store.finish(ended("b"), undefined, []),
      store.save(testCall({ id: "b", state: CallState.DISPATCHED })),
    ];
    expect(await Promise.all(saved)).toEqual([true, true, true, true, false]);
    expect((await store.get("a"))?.call.status.state).toBe(CallState.DISPATCHED);
    expect((await store.get("b"))?.call.status.state).toBe(CallState.SUCCEEDED);
  });

  test("deletes secrets with the end, and the outcome with its acknowledgement", async () => {
    const ids = ["a", "b"];
    await Promise.all(ids.map((id) => store.insert(received(id), { ...NO_ARGUMENTS, shown: Buffer.from("{}") })));
    await Promise.all(ids.map((id) => store.finish(ended(id), Buffer.from(id), [])));
    const rows = () =>
      db
        .selectFrom("calls")
        .select(["id", "args", "outcome", "outcome_pending", "outcome_index"])
        .orderBy("id")
        .execute();
    expect(await rows()).toEqual(
      ids.map((id) => ({
        id,
        args: new Uint8Array(),
        outcome: Uint8Array.from(Buffer.from(id)),
        outcome_pending: 1,
        outcome_index: null,
      })),
    );
    store.outcomeRecorded("a", 7n);
    store.outcomeRecorded("b", 8n);
    await writes.close();
    const acknowledged = { args: new Uint8Array(), outcome: null, outcome_pending: 0 };
    expect(await rows()).toEqual([
      { id: "a", ...acknowledged, outcome_index: 7 },
      { id: "b", ...acknowledged, outcome_index: 8 },
    ]);
  });
});
