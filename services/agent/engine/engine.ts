import type { JsonObject, JsonValue, MessageInitShape } from "@bufbuild/protobuf";
import type { RunCallSchema, RunEventSchema, RunState, RunUsageSchema } from "../../../gen/ts/reeve/agent/v1/run_pb.ts";

/** Carries runs to their ends. Inline and durable engines run the same function, and write to the same journal. */
export interface RunEngine {
  /** Whether a run goes on after the death of the process that it runs in. */
  readonly durable: boolean;
  /** Hands a stored run over. Idempotent by the run's id. Resolves once the engine has it, not when the run ends. */
  start(runId: string): Promise<void>;
  /** What a step waits for has come: a call's end, a person's answer. Idempotent by run and name; the first value counts. */
  answer(runId: string, name: string, value: JsonValue): Promise<void>;
  /** Cancels a run. Idempotent. Resolves once the engine knows, not when the run has ended. */
  cancel(runId: string): Promise<void>;
  close(): Promise<void>;
}

/** A run as its row has it, which is the authority: what an engine was handed may be older, or not from us. */
export interface StoredRun {
  runId: string;
  /** The frozen input. Its texts are gone once the retention of ended runs is over. */
  input: JsonObject;
  /** It has no devices, whatever the input says. */
  untrusted: boolean;
  durable: boolean;
  state: RunState;
  /** A worker has to end it as canceled. */
  cancelRequested: boolean;
}

/** What happens in a run, before the store numbers it. */
export type RunEventBody = Extract<MessageInitShape<typeof RunEventSchema>["event"], { value: unknown }> & {
  case: Exclude<RunEventCase, "state">;
};

type RunEventCase = NonNullable<NonNullable<MessageInitShape<typeof RunEventSchema>["event"]>["case"]>;

/** What a run waits for. */
export interface Wait {
  /** The name in `Steps.answer`: "call/<call id>" or "question/<question id>". Unique in a run. */
  name: string;
  /** A call that runs, is held or is queued for its device, or a question. It may change while it is waited for. */
  what: "running" | "held" | "queued" | "question";
  /** The call's or the question's id. */
  id: string;
  /** The approval that decides about the call. */
  approvalId?: string;
  /** What is asked. Sealed in the database. */
  text?: string;
}

/** How a run ended. */
export interface RunEnd {
  state: typeof RunState.SUCCEEDED | typeof RunState.FAILED | typeof RunState.CANCELED | typeof RunState.INTERRUPTED;
  /** In a word: done, turn_limit, token_limit, canceled, refused, error, interrupted. */
  end: string;
  /** The model's last text. */
  text: string;
  /** What went wrong. */
  error?: { reason: number; metadata?: Record<string, string>; message: string };
  turns: number;
  usage: MessageInitShape<typeof RunUsageSchema>;
  calls: readonly MessageInitShape<typeof RunCallSchema>[];
}

/**
 * What workers write of a run. Every method may be repeated with the same arguments, as a replay does, and changes nothing
 * then. None changes a run that has ended.
 */
export interface RunJournal {
  /** Undefined for a run that there is not. */
  load(runId: string): Promise<StoredRun | undefined>;
  /** A worker has the run: PENDING becomes RUNNING. */
  started(runId: string): Promise<void>;
  /**
   * Stores what happened. `key` names it within the run, such as "turn/2/ended" or "call/<id>/held": the store numbers
   * events in the order of their first arrival, and keeps one for each key.
   */
  event(runId: string, key: string, event: RunEventBody): Promise<void>;
  /**
   * The run waits for this; again with the same name: it waits for it as it is now. The run is WAITING where nothing that it
   * waits for is running.
   */
  wait(runId: string, wait: Wait): Promise<void>;
  /** What it waited for has come, or it does not wait any more. It is RUNNING again where it waits for nothing else. */
  settled(runId: string, name: string): Promise<void>;
  /** The first end counts. */
  end(runId: string, end: RunEnd): Promise<void>;
  /** The waits for calls of all runs that have not ended, for the part that brings calls' ends. */
  waitingCalls(filter: { durable: boolean }): Promise<readonly { runId: string; wait: Wait }[]>;
}
