import type { JsonObject } from "@bufbuild/protobuf";
import type { Selectable } from "kysely";
import {
  type Run,
  type RunAnswer,
  type RunEvent,
  type RunSpec,
  RunState,
} from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import type { Principal } from "../../../lib/auth/principal.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import { answerKey } from "./answer-key.ts";
import { eventKey, readEvent } from "./events.ts";
import { listedRunOf, runOf } from "./run-of.ts";
import { OPEN_STATES } from "./states.ts";
import type { AgentTables, WaitsTable } from "./tables.ts";
import type { Texts } from "./texts.ts";

/** A run that is to be stored. */
export interface NewRun {
  id: string;
  principal: Pick<Principal, "id" | "name">;
  digest: string;
  spec: RunSpec;
  input: JsonObject;
  durable: boolean;
  untrusted: boolean;
  /** The process that an inline run is in. */
  owner: string;
  createMs: number;
}

/** Which runs to list. */
export interface RunQuery {
  limit: number;
  /** Only those before this position. */
  before?: number;
  state?: RunState;
  principalId?: string;
}

/** Where runs are kept. Every promise of a change resolves when it is on disk. */
export interface RunStore {
  /** False where the id is taken: nothing was written. */
  insert(run: NewRun): Promise<boolean>;
  /** The run in full; undefined where there is none. */
  get(runId: string): Promise<Run | undefined>;
  /** Whose it is, and the digest of what was requested. */
  owner(runId: string): Promise<{ principalId: string; digest: string } | undefined>;
  /** Newest first. */
  list(query: RunQuery): Promise<{ runs: Run[]; next: number | undefined }>;
  /** The events of a run from a number on, in order, and whether it had ended when they were read. */
  events(runId: string, from: number, limit: number): Promise<{ events: RunEvent[]; ended: boolean }>;
  /** The newest event's number of each of these runs. */
  lastSequences(runIds: readonly string[]): Promise<ReadonlyMap<string, number>>;
  /** What a person answered to a question; undefined where no person did yet. */
  answer(runId: string, questionId: string): Promise<RunAnswer | undefined>;
  /** Notes that a run is to be canceled; false where it has ended. */
  requestCancel(runId: string): Promise<boolean>;
  /** Runs that have not ended, oldest first. */
  open(filter: { durable: boolean }): Promise<readonly { runId: string; owner: string }[]>;
  /** How many runs there are in each state. */
  count(): Promise<ReadonlyMap<RunState, number>>;
}

/** Runs in the agent service's database, whose texts are sealed. */
export function createRunStore(db: Database<AgentTables>, writes: GroupCommit<AgentTables>, texts: Texts): RunStore {
  const waitsOf = async (runIds: readonly string[]): Promise<Selectable<WaitsTable>[]> => {
    if (runIds.length === 0) return [];
    const rows = db.selectFrom("agent_run_waits").selectAll().where("run_id", "in", runIds);
    return rows.where("answer_ms", "is", null).orderBy("since_ms").orderBy("name").execute();
  };
  const eventsFrom = async (runId: string, from: number, limit?: number): Promise<RunEvent[]> => {
    const query = db.selectFrom("agent_run_events").selectAll().where("run_id", "=", runId);
    const ordered = query.where("sequence", ">=", from).orderBy("sequence");
    const rows = await (limit === undefined ? ordered : ordered.limit(limit)).execute();
    return rows.map((row) => readEvent(row, texts));
  };
  return {
    insert: (run) =>
      writes.write(async (trx) => {
        const inserted = await trx
          .insertInto("agent_runs")
          .values({
            id: run.id,
            principal_id: run.principal.id,
            principal_name: run.principal.name,
            digest: run.digest,
            state: RunState.PENDING,
            durable: run.durable ? 1 : 0,
            untrusted: run.untrusted ? 1 : 0,
            cancel_requested: 0,
            owner: run.owner,
            spec: texts.sealSpec(run.id, run.spec),
            input: texts.sealInput(run.id, run.input),
            status: null,
            turns: 0,
            last_sequence: 0,
            create_ms: run.createMs,
            start_ms: null,
            end_ms: null,
          })
          .onConflict((conflict) => conflict.column("id").doNothing())
          .executeTakeFirst();
        return inserted.numInsertedOrUpdatedRows === 1n;
      }),
    async get(runId) {
      const row = await db.selectFrom("agent_runs").selectAll().where("id", "=", runId).executeTakeFirst();
      if (row === undefined) return undefined;
      const events = row.status === null ? await eventsFrom(runId, 1) : [];
      return runOf(row, await waitsOf([runId]), events, texts);
    },
    async owner(runId) {
      const query = db.selectFrom("agent_runs").select(["principal_id", "digest"]).where("id", "=", runId);
      const row = await query.executeTakeFirst();
      return row && { principalId: row.principal_id, digest: row.digest };
    },
    async list({ limit, before, state, principalId }) {
      let query = db
        .selectFrom("agent_runs")
        .selectAll()
        .orderBy("seq", "desc")
        .limit(limit + 1);
      if (before !== undefined) query = query.where("seq", "<", before);
      if (state !== undefined) query = query.where("state", "=", state);
      if (principalId !== undefined) query = query.where("principal_id", "=", principalId);
      const found = await query.execute();
      const page = found.slice(0, limit);
      const waits = await waitsOf(page.map(({ id }) => id));
      const runs = page.map((row) =>
        listedRunOf(
          row,
          waits.filter((wait) => wait.run_id === row.id),
          texts,
        ),
      );
      return { runs, next: found.length > limit ? Number(page.at(-1)?.seq) : undefined };
    },
    async events(runId, from, limit) {
      // The state first: where it has ended, all events are stored.
      const row = await db.selectFrom("agent_runs").select("end_ms").where("id", "=", runId).executeTakeFirst();
      const events = await eventsFrom(runId, from, limit);
      return { events, ended: row?.end_ms !== null && events.length < limit };
    },
    async lastSequences(runIds) {
      if (runIds.length === 0) return new Map();
      const rows = await db
        .selectFrom("agent_runs")
        .select(["id", "last_sequence"])
        .where("id", "in", runIds)
        .execute();
      return new Map(rows.map((row) => [row.id, row.last_sequence]));
    },
    async answer(runId, questionId) {
      const query = db.selectFrom("agent_run_events").selectAll().where("run_id", "=", runId);
      const row = await query.where("key", "=", eventKey(answerKey(questionId))).executeTakeFirst();
      const event = row && readEvent(row, texts).event;
      return event?.case === "answer" ? event.value : undefined;
    },
    requestCancel: (runId) =>
      writes.write(async (trx) => {
        const update = trx.updateTable("agent_runs").set({ cancel_requested: 1 }).where("id", "=", runId);
        const { numUpdatedRows } = await update.where("end_ms", "is", null).executeTakeFirst();
        return numUpdatedRows === 1n;
      }),
    async open({ durable }) {
      const query = db.selectFrom("agent_runs").select(["id", "owner"]).where("state", "in", OPEN_STATES);
      const rows = await query
        .where("durable", "=", durable ? 1 : 0)
        .orderBy("seq")
        .execute();
      return rows.map((row) => ({ runId: row.id, owner: row.owner }));
    },
    async count() {
      const counted = db.selectFrom("agent_runs").select(["state", (eb) => eb.fn.countAll<number>().as("runs")]);
      const rows = await counted.groupBy("state").execute();
      return new Map(rows.map(({ state, runs }) => [state as RunState, Number(runs)]));
    },
  };
}
