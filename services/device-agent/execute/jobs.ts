import { fromBinary } from "@bufbuild/protobuf";
import {
  ExecutionFinishedSchema,
  LedgerOutputSchema,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { Execution, Ledger } from "../ledger/ledger.ts";
import type { KnownCall, Outputs } from "../output/outputs.ts";
import type { Job, Jobs } from "../tools/jobs.ts";
import type { OpenCalls } from "./open-calls.ts";

/** The caller, as the grant of its call says. */
export interface JobCaller {
  principalId: string;
  isOperator: boolean;
}

export interface JobPorts {
  open: Pick<OpenCalls, "find" | "all">;
  ledger: Pick<Ledger, "find" | "newest">;
  outputs: Pick<Outputs, "read" | "summaryOf">;
}

/** The tools that look after calls are no jobs themselves. */
const OWN_TOOLS = "job.";

/** The calls of a device, for the tools that look after them. */
export function createJobs({ open, ledger, outputs }: JobPorts, { principalId, isOperator }: JobCaller): Jobs {
  const isVisible = (one: { tool: string; principalId?: string | undefined }): boolean =>
    !one.tool.startsWith(OWN_TOOLS) && (isOperator || one.principalId === principalId);
  const knownOf = ({ callId, output, finished }: Execution): KnownCall => ({
    open: open.find(callId) !== undefined && finished === undefined,
    output: output && fromBinary(LedgerOutputSchema, output),
  });
  const jobOf = (one: Execution): Job => {
    const { callId, tool, startMs, endMs, finished } = one;
    const end = finished && fromBinary(ExecutionFinishedSchema, finished);
    return { callId, tool, startMs, endMs, finished: end, output: outputs.summaryOf(callId, knownOf(one)) };
  };
  const executionOf = async (callId: string): Promise<Execution | undefined> => {
    const known = await ledger.find(callId);
    const waiting = known ?? open.find(callId)?.execution;
    if (waiting === undefined || !isVisible(waiting)) return undefined;
    return known ?? { ...waiting, state: "started", startMs: undefined, finished: undefined };
  };
  return {
    async list(runningOnly, most) {
      const running = [...open.all()].map(({ execution }) => execution).filter(isVisible);
      const found = await Promise.all(running.map(({ callId }) => executionOf(callId)));
      const others = runningOnly ? [] : await ledger.newest(isOperator ? undefined : principalId, most);
      const all = new Map([...found, ...others].flatMap((one) => (one === undefined ? [] : [[one.callId, one]])));
      return [...all.values()].slice(0, most).map(jobOf);
    },
    async find(callId) {
      const one = await executionOf(callId);
      return one && jobOf(one);
    },
    async read(callId, range) {
      const one = await executionOf(callId);
      return one && outputs.read(callId, range, knownOf(one));
    },
    cancel(callId) {
      const call = open.find(callId);
      if (call !== undefined && isVisible(call.execution)) call.stop?.stop("canceled");
    },
  };
}
