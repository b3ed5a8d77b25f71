import { setTimeout as sleep } from "node:timers/promises";
import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { type ExecutionOutput, OutputStream } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { ExecutionOutcome } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import {
  type JobInfo,
  JobInfoSchema,
  type Job as JobService,
  JobState,
  type JobTextSchema,
} from "../../../gen/ts/reeve/tools/v1/job_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import { createOutputCleaner } from "../../../lib/sanitize/output-cleaner.ts";
import { CONTEXT_BYTES } from "../../../lib/sanitize/sanitize.ts";
import type { ReadRange } from "../output/chunk-source.ts";
import type { OutputPart } from "../output/outputs.ts";
import type { Job } from "./jobs.ts";
import { throwIfAborted } from "./outcome.ts";
import type { ToolContext, ToolFamily } from "./tool.ts";

/** How many jobs a list has, and how many bytes a part of the output, where the caller does not say. */
const [DEFAULT_RESULTS, DEFAULT_BYTES] = [20, 32 * 1024];

/** How often it is looked whether a job has printed something or has ended, in milliseconds. */
const LOOK_MS = 50;

/** How long the end of a job is waited for that is being canceled, in milliseconds. */
const CANCEL_MS = 3000;

/** Looks after calls that go on without their caller. */
export const jobTools: ToolFamily<typeof JobService> = {
  list: async ({ running, maxResults }, { jobs }) => ({
    jobs: (await jobs().list(running, maxResults || DEFAULT_RESULTS)).map(infoOf),
  }),

  async status({ callId }, context) {
    const job = await findJob(context, callId);
    return { job: infoOf(job), message: job.finished?.message ?? "" };
  },

  async output({ callId, fromSequence, maxBytes, waitMs }, context) {
    const range = {
      from: fromSequence,
      maxBytes: maxBytes || DEFAULT_BYTES,
      contextBytes: fromSequence > 0 ? CONTEXT_BYTES : 0,
    };
    const part = await readPart(context, callId, range, waitMs);
    const cleaner = createOutputCleaner(part.chunks.filter(({ sequence }) => sequence < fromSequence));
    const shown = part.chunks.filter(({ sequence }) => sequence >= fromSequence).map(cleaner.clean);
    const { truncatedAtByte, chunks: printed, open } = part.summary;
    const complete = !open && part.next >= printed;
    const rest = complete ? cleaner.rest().filter(({ sequence }) => sequence >= fromSequence) : [];
    return {
      output: textsOf([...shown, ...rest]),
      nextSequence: Math.max(part.next, ...rest.map(({ sequence }) => sequence + 1)),
      complete,
      ...(truncatedAtByte === undefined ? {} : { truncatedAtByte }),
    };
  },

  async cancel({ callId }, context) {
    await findJob(context, callId);
    context.jobs().cancel(callId);
    let job = await findJob(context, callId);
    for (let waited = 0; job.finished === undefined && waited < CANCEL_MS; waited += LOOK_MS) {
      await sleep(LOOK_MS);
      throwIfAborted(context);
      job = await findJob(context, callId);
    }
    return { state: stateOf(job) };
  },
};

async function findJob({ jobs }: ToolContext, callId: string): Promise<Job> {
  const job = await jobs().find(callId);
  if (job === undefined) throw notThere(callId);
  return job;
}

/** A part that holds something, where the caller waits for that and the job has not ended. */
async function readPart(context: ToolContext, callId: string, range: ReadRange, waitMs: number): Promise<OutputPart> {
  const until = performance.now() + waitMs;
  for (;;) {
    const part = await context.jobs().read(callId, range);
    if (part === undefined) throw notThere(callId);
    if (part.next > range.from || !part.summary.open || performance.now() >= until) return part;
    await sleep(LOOK_MS);
    throwIfAborted(context);
  }
}

/** What follows each other on one stream as one text. */
function textsOf(chunks: readonly ExecutionOutput[]): MessageInitShape<typeof JobTextSchema>[] {
  const texts: { stderr: boolean; text: string }[] = [];
  for (const { stream, data } of chunks) {
    if (data.length === 0) continue;
    const stderr = stream === OutputStream.STDERR;
    const text = Buffer.from(data).toString();
    const last = texts.at(-1);
    if (last?.stderr === stderr) last.text += text;
    else texts.push({ stderr, text });
  }
  return texts;
}

const STATES: ReadonlyMap<ExecutionOutcome, JobState> = new Map([
  [ExecutionOutcome.SUCCEEDED, JobState.SUCCEEDED],
  [ExecutionOutcome.TIMED_OUT, JobState.TIMED_OUT],
  [ExecutionOutcome.CANCELED, JobState.CANCELED],
  [ExecutionOutcome.INTERRUPTED, JobState.UNKNOWN],
]);

function stateOf({ finished }: Job): JobState {
  return finished === undefined ? JobState.RUNNING : (STATES.get(finished.outcome) ?? JobState.FAILED);
}

function infoOf(job: Job): JobInfo {
  const { callId, tool, startMs, endMs, output } = job;
  return create(JobInfoSchema, {
    callId,
    tool,
    state: stateOf(job),
    outputChunks: output.chunks,
    outputBytes: output.bytes,
    ...(startMs === undefined ? {} : { startTime: timestampFromMs(startMs) }),
    ...(endMs === undefined ? {} : { endTime: timestampFromMs(endMs) }),
  });
}

function notThere(callId: string): Error {
  const message = `there is no call ${callId} of yours on this device`;
  return fault(ErrorReason.TARGET_NOT_FOUND, { field: "call_id" }, { message });
}
