import type { ExecutionFinished, OutputSummary } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { ReadRange } from "../output/chunk-source.ts";
import type { OutputPart } from "../output/outputs.ts";

/** A call that a caller looks after. */
export interface Job {
  callId: string;
  tool: string;
  /** Undefined where it has not been started. In milliseconds since 1970. */
  startMs: number | undefined;
  endMs: number | undefined;
  /** Undefined while it runs or waits for a place. */
  finished: ExecutionFinished | undefined;
  output: OutputSummary;
}

/** The calls that one caller may look after: its own, or all where it is an operator. */
export interface Jobs {
  /** Those that run, then the newest of the others. */
  list(runningOnly: boolean, most: number): Promise<Job[]>;
  /** Undefined for one that is not known, or not the caller's. */
  find(callId: string): Promise<Job | undefined>;
  /** A part of what one has printed; undefined as above. */
  read(callId: string, range: ReadRange): Promise<OutputPart | undefined>;
  /** Stops one that is the caller's. */
  cancel(callId: string): void;
}
