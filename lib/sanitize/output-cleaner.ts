import { create } from "@bufbuild/protobuf";
import {
  type ExecutionOutput,
  ExecutionOutputSchema,
  OutputStream,
} from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { createStreamCleaner, type StreamCleaner } from "./stream.ts";

/** Cleans the output of one call, chunk by chunk: what a secret or an escape sequence is split over is still caught. */
export interface OutputCleaner {
  /** The next chunk, without what cannot be sanitized before more has come: it may be empty. */
  clean(output: ExecutionOutput): ExecutionOutput;
  /** What is left when no more comes, a chunk for each stream that has something. */
  rest(): ExecutionOutput[];
}

const encoder = new TextEncoder();

/** @param before what was printed before the first chunk: CONTEXT_BYTES of each stream, where there are so many. */
export function createOutputCleaner(before: Iterable<ExecutionOutput> = []): OutputCleaner {
  // Both at once: what is left of them at the end comes in the same order, whichever printed first.
  const cleaners = new Map<OutputStream, StreamCleaner>([
    [OutputStream.STDOUT, createStreamCleaner()],
    [OutputStream.STDERR, createStreamCleaner()],
  ]);
  let last: ExecutionOutput | undefined;
  const clean = (output: ExecutionOutput): ExecutionOutput => {
    last = output;
    // Streams that a device makes up count as standard output: each would keep a cleaner for as long as the call runs.
    const stream = output.stream === OutputStream.STDERR ? OutputStream.STDERR : OutputStream.STDOUT;
    return { ...output, stream, data: encoder.encode(cleaners.get(stream)?.push(output.data)) };
  };
  for (const output of before) clean(output);
  return {
    clean,
    rest() {
      if (last === undefined) return [];
      const { callId, sequence } = last;
      return [...cleaners]
        .map(([stream, cleaner]) => ({ stream, data: encoder.encode(cleaner.end()) }))
        .filter(({ data }) => data.length > 0)
        .map((chunk, at) => create(ExecutionOutputSchema, { callId, sequence: sequence + 1 + at, ...chunk }));
    },
  };
}
