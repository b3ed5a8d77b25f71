import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Selectable, Transaction } from "kysely";
import { type RunEvent, RunEventSchema } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import type { AgentTables } from "./tables.ts";
import type { Texts } from "./texts.ts";

/** The key of a run's last event. */
export const END_KEY = "end";

/** The key under which an event is stored that has one from an engine: apart from the store's own. */
export function eventKey(key: string): string {
  return `event/${key}`;
}

/** An event that is to be stored. */
export interface NewEvent {
  runId: string;
  /** Its name in the run: one is stored for each. */
  key: string;
  event: NonNullable<MessageInitShape<typeof RunEventSchema>["event"]>;
  timeMs: number;
}

/**
 * Stores an event of a run under the next number, in the caller's transaction, which no other of the table may overlap.
 * False where the run has one of that key already, or has ended.
 */
export async function addEventRow(trx: Transaction<AgentTables>, one: NewEvent, texts: Texts): Promise<boolean> {
  const { runId, key, timeMs } = one;
  const run = await trx
    .selectFrom("agent_runs")
    .select("last_sequence")
    .where("id", "=", runId)
    .where("end_ms", "is", null)
    .executeTakeFirst();
  if (run === undefined) return false;
  const known = trx.selectFrom("agent_run_events").select("sequence").where("run_id", "=", runId);
  if ((await known.where("key", "=", key).executeTakeFirst()) !== undefined) return false;
  const sequence = run.last_sequence + 1;
  const event = texts.sealEvent(runId, key, create(RunEventSchema, { event: one.event }));
  await trx
    .insertInto("agent_run_events")
    .values({ run_id: runId, sequence, key, time_ms: timeMs, event })
    .executeTakeFirst();
  await trx.updateTable("agent_runs").set({ last_sequence: sequence }).where("id", "=", runId).executeTakeFirst();
  return true;
}

/** An event as it is sent. */
export function readEvent(row: Selectable<AgentTables["agent_run_events"]>, texts: Texts): RunEvent {
  const event = texts.openEvent(row.run_id, row.key, row.event);
  return { ...event, sequence: row.sequence, time: timestampFromMs(Number(row.time_ms)) };
}
