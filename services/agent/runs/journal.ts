import { create } from "@bufbuild/protobuf";
import type { Transaction } from "kysely";
import {
  RunCallSchema,
  RunState,
  type RunStatus,
  RunStatusSchema,
  RunUsageSchema,
} from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import { ErrorDetailSchema, type ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Database } from "../../../lib/store/database.ts";
import type { GroupCommit } from "../../../lib/store/group-commit.ts";
import type { RunEnd, RunJournal, Wait } from "../engine/engine.ts";
import { addEventRow, END_KEY, eventKey } from "./events.ts";
import { openState } from "./states.ts";
import type { AgentTables } from "./tables.ts";
import type { Texts } from "./texts.ts";

/** Batches that number events run one after another under this lock, on all replicas. */
export const RUNS_LOCK = "reeve-agent-runs";

/** What the journal is made of. */
export interface JournalParts {
  db: Database<AgentTables>;
  /** Where replicas share the database, with RUNS_LOCK. */
  writes: GroupCommit<AgentTables>;
  texts: Texts;
  /** Called after a commit in which a run has changed. */
  onChange(runId: string): void;
  now(): number;
}

/** The journal of runs in the database. */
export function createJournal({ db, writes, texts, onChange, now }: JournalParts): RunJournal {
  const change = async (runId: string, job: (trx: Transaction<AgentTables>) => Promise<boolean>): Promise<void> => {
    if (await writes.write(job)) onChange(runId);
  };
  /** Moves a run that has not ended to the state, with an event. */
  const moveTo = async (trx: Transaction<AgentTables>, runId: string, state: RunState): Promise<boolean> => {
    const query = trx.selectFrom("agent_runs").select(["state", "last_sequence"]).where("id", "=", runId);
    const run = await query.where("end_ms", "is", null).executeTakeFirst();
    if (run === undefined || run.state === state) return false;
    const key = `state/${run.last_sequence + 1}`;
    await addEventRow(trx, { runId, key, event: { case: "state", value: { state } }, timeMs: now() }, texts);
    await trx.updateTable("agent_runs").set({ state }).where("id", "=", runId).executeTakeFirst();
    return true;
  };
  const moveByWaits = async (trx: Transaction<AgentTables>, runId: string): Promise<boolean> => {
    const waits = trx.selectFrom("agent_run_waits").select("what").where("run_id", "=", runId);
    return moveTo(trx, runId, openState(await waits.where("answer_ms", "is", null).execute()));
  };

  return {
    async load(runId) {
      const row = await db.selectFrom("agent_runs").selectAll().where("id", "=", runId).executeTakeFirst();
      return (
        row && {
          runId,
          input: row.input === null ? {} : texts.openInput(runId, row.input),
          untrusted: row.untrusted === 1,
          durable: row.durable === 1,
          state: row.state as RunState,
          cancelRequested: row.cancel_requested === 1,
        }
      );
    },
    started: (runId) =>
      change(runId, async (trx) => {
        const first = trx.updateTable("agent_runs").set({ start_ms: now() }).where("id", "=", runId);
        const { numUpdatedRows } = await first.where("state", "=", RunState.PENDING).executeTakeFirst();
        return numUpdatedRows === 1n && moveTo(trx, runId, RunState.RUNNING);
      }),
    event: (runId, key, event) =>
      change(runId, async (trx) => {
        const isNew = await addEventRow(trx, { runId, key: eventKey(key), event, timeMs: now() }, texts);
        if (!isNew || event.case !== "turnStarted") return isNew;
        const { turn } = event.value;
        await trx.updateTable("agent_runs").set({ turns: turn }).where("id", "=", runId).executeTakeFirst();
        return true;
      }),
    wait: (runId, wait) =>
      change(runId, async (trx) => {
        if (!(await writeWait(trx, runId, wait, texts, now()))) return false;
        await moveByWaits(trx, runId);
        return true;
      }),
    settled: (runId, name) =>
      change(runId, async (trx) => {
        const open = trx.updateTable("agent_run_waits").set({ answer_ms: now() }).where("run_id", "=", runId);
        const answered = await open.where("name", "=", name).where("answer_ms", "is", null).executeTakeFirst();
        if (answered.numUpdatedRows === 0n) return false;
        await moveByWaits(trx, runId);
        return true;
      }),
    end: (runId, end) =>
      change(runId, async (trx) => {
        const status = statusOf(end);
        const event = { case: "state" as const, value: { state: end.state, status } };
        const timeMs = now();
        if (!(await addEventRow(trx, { runId, key: END_KEY, event, timeMs }, texts))) return false;
        const values = { state: end.state, end_ms: timeMs, turns: end.turns, status: texts.sealStatus(runId, status) };
        await trx.updateTable("agent_runs").set(values).where("id", "=", runId).executeTakeFirst();
        await trx
          .updateTable("agent_run_waits")
          .set({ answer_ms: timeMs })
          .where("run_id", "=", runId)
          .where("answer_ms", "is", null)
          .executeTakeFirst();
        return true;
      }),
    async waitingCalls({ durable }) {
      const rows = await db
        .selectFrom("agent_run_waits")
        .innerJoin("agent_runs", "agent_runs.id", "agent_run_waits.run_id")
        .selectAll("agent_run_waits")
        .where("answer_ms", "is", null)
        .where("what", "!=", "question")
        .where("durable", "=", durable ? 1 : 0)
        .execute();
      return rows.map((row) => ({
        runId: row.run_id,
        wait: {
          name: row.name,
          what: row.what as Wait["what"],
          id: row.ref_id,
          ...(row.approval_id !== "" && { approvalId: row.approval_id }),
        },
      }));
    },
  };
}

/** False where the run has ended, or the wait is over or as it was. */
async function writeWait(
  trx: Transaction<AgentTables>,
  runId: string,
  { name, what, id, approvalId = "", text }: Wait,
  texts: Texts,
  nowMs: number,
): Promise<boolean> {
  const run = trx.selectFrom("agent_runs").select("id").where("id", "=", runId).where("end_ms", "is", null);
  if ((await run.executeTakeFirst()) === undefined) return false;
  const of = trx.selectFrom("agent_run_waits").selectAll().where("run_id", "=", runId);
  const known = await of.where("name", "=", name).executeTakeFirst();
  if (known === undefined) {
    const sealed = text === undefined ? null : texts.sealWait(runId, name, text);
    const row = { run_id: runId, name, what, ref_id: id, approval_id: approvalId, text: sealed, since_ms: nowMs };
    await trx
      .insertInto("agent_run_waits")
      .values({ ...row, answer_ms: null })
      .executeTakeFirst();
    return true;
  }
  if (known.answer_ms !== null) return false;
  if (known.what === what && known.approval_id === approvalId && known.ref_id === id) return false;
  const update = trx.updateTable("agent_run_waits").set({ what, ref_id: id, approval_id: approvalId, since_ms: nowMs });
  await update.where("run_id", "=", runId).where("name", "=", name).executeTakeFirst();
  return true;
}

function statusOf(end: RunEnd): RunStatus {
  const { error } = end;
  return create(RunStatusSchema, {
    state: end.state,
    end: end.end,
    text: end.text,
    turns: end.turns,
    usage: create(RunUsageSchema, end.usage),
    calls: end.calls.map((call) => create(RunCallSchema, call)),
    ...(error && {
      error: create(ErrorDetailSchema, { reason: error.reason as ErrorReason, metadata: error.metadata ?? {} }),
      message: error.message,
    }),
  });
}
