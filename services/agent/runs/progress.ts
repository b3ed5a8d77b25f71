import { create } from "@bufbuild/protobuf";
import {
  RunCallSchema,
  type RunEvent,
  type RunStatus,
  type RunUsage,
  RunUsageSchema,
} from "../../../gen/ts/reeve/agent/v1/run_pb.ts";

/** Adds to a status what an event says: how far a run has come that has not ended, or whose process died. */
export function addEvent(status: RunStatus, { event }: RunEvent): void {
  switch (event.case) {
    case "turnStarted":
      status.turns = event.value.turn;
      return;
    case "turnEnded":
      if (event.value.text !== "") status.text = event.value.text;
      status.usage = sum(status.usage, event.value.usage);
      return;
    case "toolStarted":
      status.calls.push(create(RunCallSchema, { toolUseId: event.value.toolUseId, tool: event.value.tool }));
      return;
    case "toolReport": {
      const { callId, approvalId, what } = event.value;
      change(status, event.value.toolUseId, { callId, state: what, ...(approvalId !== "" && { approvalId }) });
      return;
    }
    case "toolEnded": {
      const { callId, state, isError } = event.value;
      change(status, event.value.toolUseId, { state, isError, ...(callId !== "" && { callId }) });
      return;
    }
    default:
      return;
  }
}

function change(status: RunStatus, toolUseId: string, what: Partial<RunStatus["calls"][number]>): void {
  const call = status.calls.findLast((one) => one.toolUseId === toolUseId);
  if (call !== undefined) Object.assign(call, what);
}

/** What turns used together. Their cost is known where it is known of each. */
function sum(a: RunUsage | undefined, b: RunUsage | undefined): RunUsage {
  const { inputTokens = 0n, outputTokens = 0n, cacheReadTokens = 0n, cacheWriteTokens = 0n } = a ?? {};
  const before = a === undefined ? 0n : a.costUsdMicros;
  const added = b?.costUsdMicros;
  return create(RunUsageSchema, {
    inputTokens: inputTokens + (b?.inputTokens ?? 0n),
    outputTokens: outputTokens + (b?.outputTokens ?? 0n),
    cacheReadTokens: cacheReadTokens + (b?.cacheReadTokens ?? 0n),
    cacheWriteTokens: cacheWriteTokens + (b?.cacheWriteTokens ?? 0n),
    ...(before !== undefined && added !== undefined && { costUsdMicros: before + added }),
  });
}
