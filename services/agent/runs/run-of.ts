import { create } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Selectable } from "kysely";
import {
  type Run,
  type RunEvent,
  RunSchema,
  type RunState,
  type RunStatus,
  RunStatusSchema,
  type RunWait,
  RunWaitSchema,
} from "../../../gen/ts/reeve/agent/v1/run_pb.ts";
import { addEvent } from "./progress.ts";
import type { RunsTable, WaitsTable } from "./tables.ts";
import { specWithoutTexts, type Texts } from "./texts.ts";

/** The most characters of a text in a list. */
const LISTED = 200;

/** A run as it is shown: its row, what it waits for, and its events where it has not ended. */
export function runOf(
  row: Selectable<RunsTable>,
  waits: readonly Selectable<WaitsTable>[],
  events: readonly RunEvent[],
  texts: Texts,
): Run {
  const status = row.status === null ? create(RunStatusSchema) : texts.openStatus(row.id, row.status);
  if (row.status === null) for (const event of events) addEvent(status, event);
  return create(RunSchema, {
    id: row.id,
    spec: texts.openSpec(row.id, row.spec),
    status: { ...status, ...plainStatus(row), waits: waits.map((wait) => waitOf(wait, texts)) },
    principalId: row.principal_id,
    principalName: row.principal_name,
    createTime: timestampFromMs(Number(row.create_ms)),
  });
}

/** A run as it is listed: without calls, with the beginning of its texts. */
export function listedRunOf(row: Selectable<RunsTable>, waits: readonly Selectable<WaitsTable>[], texts: Texts): Run {
  const run = runOf(row, waits, [], texts);
  const { spec, status } = run;
  if (spec !== undefined) run.spec = { ...specWithoutTexts(spec), prompt: short(spec.prompt), purpose: spec.purpose };
  if (status !== undefined) {
    status.calls = [];
    status.text = short(status.text);
    status.waits = status.waits.map((wait) => ({ ...wait, text: short(wait.text) }));
  }
  return run;
}

/** What the row has in clear. */
function plainStatus(row: Selectable<RunsTable>): Partial<RunStatus> {
  return {
    state: row.state as RunState,
    turns: row.turns,
    lastSequence: row.last_sequence,
    durable: row.durable === 1,
    untrusted: row.untrusted === 1,
    textsRemoved: row.texts_delete_ms !== null,
    ...(row.start_ms !== null && { startTime: timestampFromMs(Number(row.start_ms)) }),
    ...(row.end_ms !== null && { endTime: timestampFromMs(Number(row.end_ms)) }),
  };
}

function waitOf(row: Selectable<WaitsTable>, texts: Texts): RunWait {
  const isQuestion = row.what === "question";
  return create(RunWaitSchema, {
    name: row.name,
    what: row.what,
    [isQuestion ? "questionId" : "callId"]: row.ref_id,
    approvalId: row.approval_id,
    text: row.text === null ? "" : texts.openWait(row.run_id, row.name, row.text),
    since: timestampFromMs(Number(row.since_ms)),
  });
}

function short(text: string): string {
  return text.length <= LISTED ? text : `${text.slice(0, LISTED)}…`;
}
