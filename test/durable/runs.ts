import { readFile } from "node:fs/promises";
import type { MessageInitShape } from "@bufbuild/protobuf";
import { type Run, type RunSpecSchema, RunState, type RunWait } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import type { Call } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import { providerName } from "../../lib/model-tools/names.ts";
import { eventually } from "../../testkit/eventually.ts";
import type { DurablePlane } from "./durable-plane.ts";

/** A use of a tool that waits for a person, and appends one line each time that it runs. */
export function appendOnce(file: string, id?: string) {
  const command = `for one in ran; do echo $one >> '${file}'; done`;
  return { name: providerName("shell.eval"), input: { command }, ...(id !== undefined && { id }) };
}

/** A use of a tool that no person has to approve. */
export function runs(argv: readonly string[], id?: string) {
  return { name: "exec", input: { argv: [...argv] }, ...(id !== undefined && { id }) };
}

/** The lines of a file; none where there is no file. */
export async function linesOf(file: string): Promise<string[]> {
  const text = await readFile(file, "utf8").catch(() => "");
  return text.split("\n").filter((line) => line !== "");
}

/** Starts a durable run. */
export async function startRun(plane: DurablePlane, spec: MessageInitShape<typeof RunSpecSchema>): Promise<string> {
  const { run } = await plane.runs.startRun({ spec: { durable: true, ...spec } });
  return run?.id ?? "";
}

export async function getRun(plane: DurablePlane, runId: string): Promise<Run> {
  const { run } = await plane.runs.getRun({ runId });
  if (run === undefined) throw new Error(`no run ${runId}`);
  return run;
}

/** What a run waits for, once it waits. */
export async function untilWaiting(plane: DurablePlane, runId: string): Promise<RunWait> {
  return eventually(async () => {
    const { status } = await getRun(plane, runId);
    const [wait] = status?.waits ?? [];
    if (status?.state !== RunState.WAITING || wait === undefined) {
      throw new Error(`the run is in state ${status?.state}: ${status?.message}`);
    }
    return wait;
  });
}

/** The run once it has ended. */
export async function untilEnded(plane: DurablePlane, runId: string): Promise<Run> {
  return eventually(async () => {
    const run = await getRun(plane, runId);
    if ((run.status?.state ?? 0) < RunState.SUCCEEDED) throw new Error(`the run is in state ${run.status?.state}`);
    return run;
  });
}

export async function callOf(plane: DurablePlane, callId: string): Promise<Call> {
  const { call } = await plane.operator.registry.getCall({ callId });
  if (call === undefined) throw new Error(`no call ${callId}`);
  return call;
}
