import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type KillRequest,
  type KillResponseSchema,
  type Process,
  type ProcessInfoSchema,
  type ProcessListRequest,
  type ProcessListResponseSchema,
  ProcessOrder,
} from "../../../gen/ts/reeve/tools/v1/process_pb.ts";
import { killProcess } from "./process/kill.ts";
import { processSource } from "./process/process-source.ts";
import { redactCommand } from "./process/redact-command.ts";
import type { ProcessSource, RunningProcess } from "./process/running-process.ts";
import type { ToolContext, ToolFamily } from "./tool.ts";

const DEFAULT_RESULTS = 200;

/** List and end processes. The source is an argument for the systems that have no /proc. */
export function createProcessTools(source: ProcessSource = processSource): ToolFamily<typeof Process> {
  return {
    list: (input, context) => list(source, input, context),
    kill: (input, context) => kill(source, input, context),
  };
}

async function list(
  source: ProcessSource,
  { contains, order, maxResults }: ProcessListRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof ProcessListResponseSchema>> {
  const all = await source.list(context);
  // What is searched is what is shown: a search must not reveal a secret.
  const shown = all.map((process) => ({ process, command: redactCommand(process.command) }));
  const matching = shown.filter(({ command }) => command.includes(contains));
  const compare = COMPARE[order] ?? COMPARE[ProcessOrder.PID];
  matching.sort((a, b) => compare(a.process, b.process));
  const limit = maxResults || DEFAULT_RESULTS;
  const processes = matching.slice(0, limit).map(({ process, command }) => toInfo(process, command));
  return { processes, truncated: matching.length > limit };
}

async function kill(
  source: ProcessSource,
  { pid, signal, waitMs }: KillRequest,
  context: ToolContext,
): Promise<MessageInitShape<typeof KillResponseSchema>> {
  const { ended, command } = await killProcess(source, context, { pid, signal, waitMs });
  return { ended, command: redactCommand(command) };
}

type Compare = (a: RunningProcess, b: RunningProcess) => number;

const byPid: Compare = (a, b) => a.pid - b.pid;

const COMPARE: Record<number, Compare> & { [ProcessOrder.PID]: Compare } = {
  [ProcessOrder.PID]: byPid,
  [ProcessOrder.MEMORY]: (a, b) => b.memoryBytes - a.memoryBytes || byPid(a, b),
  [ProcessOrder.CPU]: (a, b) => b.cpuMs - a.cpuMs || byPid(a, b),
};

function toInfo(process: RunningProcess, command: string): MessageInitShape<typeof ProcessInfoSchema> {
  const { pid, ppid, uid, name, state, memoryBytes, cpuMs, startMs } = process;
  const startTime = timestampFromMs(startMs);
  return { pid, ppid, uid, name, command, state, memoryBytes: BigInt(memoryBytes), cpuMs: BigInt(cpuMs), startTime };
}
