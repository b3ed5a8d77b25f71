import { toJson } from "@bufbuild/protobuf";
import { watchRun } from "../../client/runs.ts";
import { type RunEvent, RunEventSchema } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import type { CommandContext } from "../command-context.ts";
import { jsonLine } from "../print/json.ts";
import { styleFor } from "../print/style.ts";
import type { Session } from "../session.ts";
import { watchNotes } from "../watch-notes.ts";
import { exitCodeOfRun } from "./exit-code.ts";
import { eventText } from "./run-text.ts";

/** How a run is shown. */
export interface WatchFlags {
  json?: true;
  /** The number of the first event. */
  from?: number;
}

/**
 * Shows what happens in a run until it ends, over restarts of the agent service: what the model says on standard output, all
 * else on standard error; with `json` a line for each event.
 */
export async function watch(
  { runs }: Session,
  runId: string,
  { json, from }: WatchFlags,
  context: CommandContext,
): Promise<void> {
  const notes = watchNotes("the agent service", context);
  const options = { ...notes, ...(from !== undefined && { fromSequence: from }) };
  for await (const event of watchRun(runs, runId, options)) {
    if (json) context.stdout.write(jsonLine(toJson(RunEventSchema, event)));
    else show(runId, event, context);
    if (event.event.case === "state") context.setExitCode(exitCodeOfRun(event.event.value.status));
  }
}

function show(runId: string, event: RunEvent, context: CommandContext): void {
  const isText = event.event.case === "turnEnded";
  const output = isText ? context.stdout : context.stderr;
  const text = eventText(runId, event, styleFor(context, output));
  if (text !== undefined) output.write(`${text}\n`);
}
