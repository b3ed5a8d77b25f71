import { setTimeout as sleep } from "node:timers/promises";
import { create } from "@bufbuild/protobuf";
import type { Selectable, Transaction } from "kysely";
import { RunEventSchema, type RunState } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import { every, type Repeated } from "../../../lib/async/every.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import { END_KEY } from "./events.ts";
import type { AgentTables, RunsTable } from "./tables.ts";
import { specWithoutTexts, statusWithoutTexts, type Texts } from "./texts.ts";

/** How often to look for texts whose time is over, in milliseconds. */
const INTERVAL_MS = 60_000;

/** How many runs lose their texts in one transaction, and how long others have the database between two, in milliseconds. */
const BATCH = 50;
const PAUSE_MS = 50;

/** What removing texts needs. */
export interface DeleteTextsOptions {
  writes: GroupCommit<AgentTables>;
  texts: Texts;
  /** Runs that ended before then. */
  endedBefore: number;
  nowMs: number;
  limit: number;
}

/**
 * Removes what people, models and tools wrote in runs that ended long ago: prompts, inputs, answers and all events but the
 * last. The run itself stays, with its ids, states and calls. Resolves with how many runs that were.
 */
export function deleteTexts({ writes, texts, endedBefore, nowMs, limit }: DeleteTextsOptions): Promise<number> {
  return writes.write(async (trx) => {
    const ended = trx.selectFrom("agent_runs").selectAll().where("end_ms", "<", endedBefore);
    const due = await ended.where("texts_delete_ms", "is", null).orderBy("end_ms").limit(limit).execute();
    for (const row of due) await deleteOf(trx, row, texts, nowMs);
    return due.length;
  });
}

async function deleteOf(
  trx: Transaction<AgentTables>,
  { id, state, spec, status }: Selectable<RunsTable>,
  texts: Texts,
  nowMs: number,
): Promise<void> {
  const bare = status === null ? undefined : statusWithoutTexts(texts.openStatus(id, status));
  const values = {
    spec: texts.sealSpec(id, specWithoutTexts(texts.openSpec(id, spec))),
    input: null,
    ...(bare && { status: texts.sealStatus(id, bare) }),
    texts_delete_ms: nowMs,
  };
  await trx.updateTable("agent_runs").set(values).where("id", "=", id).executeTakeFirst();
  await trx.deleteFrom("agent_run_waits").where("run_id", "=", id).executeTakeFirst();
  await trx.deleteFrom("agent_run_events").where("run_id", "=", id).where("key", "!=", END_KEY).executeTakeFirst();
  const changed = { state: state as RunState, ...(bare && { status: bare }) };
  const last = create(RunEventSchema, { event: { case: "state", value: changed } });
  const event = texts.sealEvent(id, END_KEY, last);
  await trx.updateTable("agent_run_events").set({ event }).where("run_id", "=", id).executeTakeFirst();
}

/** What keeping the retention needs. */
export interface RetentionOptions {
  writes: GroupCommit<AgentTables>;
  texts: Texts;
  /** From a run's end. */
  retentionMs: number;
  now(): number;
  onError(error: unknown): void;
}

/** Removes texts as the retention says, now and every minute, in small batches. */
export function keepRetention({ writes, texts, retentionMs, now, onError }: RetentionOptions): Repeated {
  let stopped = false;
  const batch = () => deleteTexts({ writes, texts, endedBefore: now() - retentionMs, nowMs: now(), limit: BATCH });
  const deleteAll = async (): Promise<void> => {
    while (!stopped && (await batch()) === BATCH) await sleep(PAUSE_MS);
  };
  const repeated = every(INTERVAL_MS, deleteAll, onError);
  return {
    stop() {
      stopped = true;
      return repeated.stop();
    },
  };
}
