import { createSecretKey } from "node:crypto";
import { create } from "@bufbuild/protobuf";
import { afterEach, beforeEach, describe, expect, test } from "vitest";
import { type Run, RunSpecSchema, RunState, RunStateSchema } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { sealerWith } from "../../../lib/identity/sealer.ts";
import type { Database } from "../../../lib/store/database.ts";
import { createGroupCommit, type GroupCommit } from "../../../lib/store/group-commit.ts";
import { STORE_KINDS, useStore } from "../../../lib/store/testdata/stores.ts";
import type { RunEnd, RunJournal } from "../engine/engine.ts";
import { createJournal, RUNS_LOCK } from "./journal.ts";
import { deleteTexts } from "./retention.ts";
import { createRunStore, type NewRun, type RunStore } from "./store.ts";
import { type AgentTables, agentMigrations } from "./tables.ts";
import { checkSealingKey, createTexts } from "./texts.ts";

const sealer = sealerWith(createSecretKey(Buffer.alloc(32, 7)));
const texts = createTexts(sealer);

describe.each(STORE_KINDS)("runs on %s", (kind) => {
  const place = useStore(kind);
  let db: Database<AgentTables>;
  let writes: GroupCommit<AgentTables>;
  let store: RunStore;
  let journal: RunJournal;
  let changed: string[];
  let nowMs: number;
  beforeEach(async () => {
    db = await place.open<AgentTables>(agentMigrations);
    writes = createGroupCommit(db, { lock: RUNS_LOCK });
    store = createRunStore(db, writes, texts);
    changed = [];
    nowMs = 1000;
    journal = createJournal({ db, writes, texts, onChange: (id) => changed.push(id), now: () => nowMs });
  });
  afterEach(() => writes.close());

  const newRun = (id: string, more: Partial<NewRun> = {}): NewRun => ({
    id,
    principal: { id: "alice", name: "Alice" },
    digest: "d",
    spec: create(RunSpecSchema, { prompt: "Look at the disk.", purpose: "tidy up", model: "anthropic/x" }),
    input: { prompt: "Look at the disk." },
    durable: false,
    untrusted: false,
    owner: "replica-1",
    createMs: 900,
    ...more,
  });
  const end = (more: Partial<RunEnd> = {}): RunEnd => ({
    state: RunState.SUCCEEDED,
    end: "done",
    text: "It is full.",
    turns: 2,
    usage: { inputTokens: 3n, outputTokens: 4n, cacheReadTokens: 0n, cacheWriteTokens: 0n },
    calls: [{ toolUseId: "u1", tool: "exec", callId: "c1", approvalId: "", state: "succeeded", isError: false }],
    ...more,
  });
  const whatOf = async (runId: string) => {
    const { events } = await store.events(runId, 1, 100);
    return events.map(({ sequence, event }) => [
      sequence,
      event.case === "state" ? RunStateSchema.value[event.value.state]?.localName : event.case,
    ]);
  };
  const get = async (runId: string): Promise<Run> => {
    const run = await store.get(runId);
    if (run === undefined) throw new Error(`no run ${runId}`);
    return run;
  };

  test("keeps a run once, however often it is brought", async () => {
    expect(await store.insert(newRun("r1"))).toBe(true);
    expect(await store.insert(newRun("r1", { digest: "other" }))).toBe(false);
    expect(await store.owner("r1")).toEqual({ principalId: "alice", digest: "d" });
    expect(await store.get("r2")).toBeUndefined();
    expect(await get("r1")).toMatchObject({
      spec: { prompt: "Look at the disk." },
      status: { state: RunState.PENDING, lastSequence: 0 },
      principalName: "Alice",
    });
    expect(await journal.load("r1")).toMatchObject({ input: { prompt: "Look at the disk." }, untrusted: false });
  });

  test("numbers what happens without gaps, and stores what a replay repeats once", async () => {
    await store.insert(newRun("r1"));
    const play = async (): Promise<void> => {
      await journal.started("r1");
      await journal.event("r1", "turn/1", { case: "turnStarted", value: turn(1) });
      await journal.wait("r1", { name: "call/c1", what: "held", id: "c1", approvalId: "apr-1" });
      await journal.settled("r1", "call/c1");
      await journal.event("r1", "turn/2", { case: "turnStarted", value: turn(2) });
    };
    await play();
    const first = await whatOf("r1");
    expect(first).toEqual([
      [1, "RUNNING"],
      [2, "turnStarted"],
      [3, "WAITING"],
      [4, "RUNNING"],
      [5, "turnStarted"],
    ]);
    changed.length = 0;
    await play();
    expect(await whatOf("r1")).toEqual(first);
    expect(changed).toEqual([]);
    expect((await get("r1")).status).toMatchObject({ state: RunState.RUNNING, turns: 2, lastSequence: 5 });
  });

  test("keeps the numbers of a run apart that is written to at the same time", async () => {
    await store.insert(newRun("r1"));
    const keys = Array.from({ length: 40 }, (_, index) => `turn/${index % 20}`);
    await Promise.all(keys.map((key) => journal.event("r1", key, { case: "turnStarted", value: turn(1) })));
    expect((await store.events("r1", 1, 100)).events.map(({ sequence }) => sequence)).toEqual(
      Array.from({ length: 20 }, (_, index) => index + 1),
    );
  });

  test("is waiting only where nothing of it runs", async () => {
    await store.insert(newRun("r1"));
    await journal.started("r1");
    await journal.wait("r1", { name: "call/a", what: "running", id: "a" });
    await journal.wait("r1", { name: "call/b", what: "held", id: "b", approvalId: "apr-b" });
    expect((await get("r1")).status?.state).toBe(RunState.RUNNING);
    await journal.wait("r1", { name: "call/a", what: "held", id: "a", approvalId: "apr-a" });
    expect((await get("r1")).status).toMatchObject({
      state: RunState.WAITING,
      waits: [{ callId: "a", approvalId: "apr-a" }, { callId: "b" }],
    });
    expect(await journal.waitingCalls({ durable: false })).toHaveLength(2);
    expect(await journal.waitingCalls({ durable: true })).toEqual([]);
    await journal.settled("r1", "call/b");
    await journal.settled("r1", "call/a");
    expect((await get("r1")).status).toMatchObject({ state: RunState.RUNNING, waits: [] });
  });

  test("ends once, with all of it, and changes no more", async () => {
    await store.insert(newRun("r1"));
    await journal.started("r1");
    await journal.wait("r1", { name: "question/q", what: "question", id: "q", text: "Which disk?" });
    expect((await get("r1")).status?.waits).toMatchObject([{ questionId: "q", text: "Which disk?" }]);
    await journal.end("r1", end());
    await journal.end("r1", end({ state: RunState.FAILED, end: "error" }));
    await journal.event("r1", "turn/9", { case: "turnStarted", value: turn(9) });
    await journal.wait("r1", { name: "call/z", what: "running", id: "z" });
    expect(await store.requestCancel("r1")).toBe(false);
    const run = await get("r1");
    expect(run.status).toMatchObject({
      state: RunState.SUCCEEDED,
      end: "done",
      text: "It is full.",
      turns: 2,
      waits: [],
      calls: [{ callId: "c1", state: "succeeded" }],
    });
    const { events, ended } = await store.events("r1", 1, 100);
    expect(ended).toBe(true);
    expect(events.at(-1)?.event).toMatchObject({ case: "state", value: { status: { text: "It is full." } } });
    expect(run.status?.lastSequence).toBe(events.at(-1)?.sequence);
  });

  test("knows how far a run has come that has not ended", async () => {
    await store.insert(newRun("r1"));
    await journal.started("r1");
    const use = { toolUseId: "u1", tool: "exec" };
    await journal.event("r1", "turn/1", { case: "turnStarted", value: turn(1) });
    await journal.event("r1", "use/u1", {
      case: "toolStarted",
      value: { ...use },
    });
    await journal.event("r1", "call/c1/held", {
      case: "toolReport",
      value: { ...use, callId: "c1", what: "held", approvalId: "apr-1" },
    });
    expect((await get("r1")).status).toMatchObject({
      turns: 1,
      calls: [{ toolUseId: "u1", callId: "c1", state: "held", approvalId: "apr-1" }],
    });
  });

  test("lists a thousand runs page by page, each once, newest first, without their calls", async () => {
    await Promise.all(
      Array.from({ length: 1000 }, (_, n) =>
        store.insert(newRun(`r${n}`, { principal: { id: n % 2 ? "alice" : "bob", name: "x" }, createMs: n })),
      ),
    );
    await journal.end("r5", end());
    const all: string[] = [];
    for (let before: number | undefined, more = true; more; ) {
      const { runs, next } = await store.list({ limit: 250, ...(before !== undefined && { before }) });
      all.push(...runs.map(({ id }) => id));
      expect(runs.flatMap(({ status }) => status?.calls ?? [])).toEqual([]);
      before = next;
      more = next !== undefined;
    }
    expect(all).toHaveLength(1000);
    expect(new Set(all).size).toBe(1000);
    expect(all[0]).toBe("r999");
    expect((await store.list({ limit: 600, principalId: "alice" })).runs).toHaveLength(500);
    expect((await store.list({ limit: 10, state: RunState.SUCCEEDED })).runs.map(({ id }) => id)).toEqual(["r5"]);
    expect(await store.count()).toEqual(
      new Map([
        [RunState.PENDING, 999],
        [RunState.SUCCEEDED, 1],
      ]),
    );
  });

  test("seals what people, models and tools wrote", async () => {
    await store.insert(newRun("r1", { input: { prompt: "SECRET-WORDS" } }));
    await journal.wait("r1", { name: "question/q", what: "question", id: "q", text: "SECRET-WORDS?" });
    await journal.event("r1", "turn/1", {
      case: "turnEnded",
      value: { turn: 1, text: "SECRET-WORDS!", stop: "done" },
    });
    await journal.end("r1", end({ text: "SECRET-WORDS." }));
    const rows = await Promise.all([
      db.selectFrom("agent_runs").selectAll().execute(),
      db.selectFrom("agent_run_events").selectAll().execute(),
      db.selectFrom("agent_run_waits").selectAll().execute(),
    ]);
    const bytes = rows.flat().flatMap((row) => Object.values(row).filter((value) => value instanceof Uint8Array));
    expect(bytes.length).toBeGreaterThan(4);
    for (const one of bytes) expect(Buffer.from(one).toString("latin1")).not.toContain("SECRET");
    const clear = JSON.stringify(
      rows.flat().map((row) => ({ ...row, spec: 0, input: 0, status: 0, event: 0, text: 0 })),
    );
    expect(clear).not.toContain("SECRET");
  });

  test("refuses a database that was sealed with another key", async () => {
    await checkSealingKey(db, sealer);
    await checkSealingKey(db, sealer);
    await expect(checkSealingKey(db, sealerWith(createSecretKey(Buffer.alloc(32, 8))))).rejects.toThrow();
  });

  test("removes the texts of runs that ended long ago, and of no others", async () => {
    for (const id of ["old", "new", "open"]) {
      await store.insert(newRun(id));
      await journal.started(id);
      await journal.event(id, "turn/1", { case: "turnStarted", value: turn(1) });
    }
    const error = { reason: ErrorReason.INTERNAL, metadata: { path: "/secret" }, message: "at /secret" };
    await journal.end("old", end({ state: RunState.FAILED, end: "error", error }));
    nowMs = 5000;
    await journal.end("new", end());
    expect(await deleteTexts({ writes, texts, endedBefore: 5000, nowMs: 6000, limit: 10 })).toBe(1);
    expect(await deleteTexts({ writes, texts, endedBefore: 5000, nowMs: 6000, limit: 10 })).toBe(0);
    const old = await get("old");
    expect(old.spec).toMatchObject({ prompt: "", purpose: "", model: "anthropic/x" });
    expect(old.status).toMatchObject({
      state: RunState.FAILED,
      text: "",
      message: "",
      error: { reason: ErrorReason.INTERNAL, metadata: {} },
      textsRemoved: true,
      calls: [{ callId: "c1" }],
    });
    expect((await journal.load("old"))?.input).toEqual({});
    const { events } = await store.events("old", 1, 100);
    expect(events.map(({ event }) => event.case)).toEqual(["state"]);
    expect(events[0]?.event.value).toMatchObject({ status: { text: "", textsRemoved: true } });
    expect((await get("new")).status?.text).toBe("It is full.");
    expect((await get("open")).spec?.prompt).toBe("Look at the disk.");
  });
});

function turn(number: number) {
  return { turn: number };
}
