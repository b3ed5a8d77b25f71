import type { JsonObject } from "@bufbuild/protobuf";
import type { AgentEnd, AgentResult } from "../../services/agent/loop/events.ts";
import { ModelError } from "../../services/agent/providers/model.ts";
import { ExitCode } from "../exit-codes.ts";

const BY_END: Readonly<Record<AgentEnd, number>> = {
  done: ExitCode.OK,
  turn_limit: ExitCode.BROKEN,
  token_limit: ExitCode.BROKEN,
  refused: ExitCode.BROKEN,
  canceled: ExitCode.CANCELED,
  error: ExitCode.BROKEN,
};

const BY_MODEL_ERROR: Readonly<Record<ModelError["kind"], number>> = {
  canceled: ExitCode.CANCELED,
  timed_out: ExitCode.TIMED_OUT,
  unauthenticated: ExitCode.DENIED,
  rate_limited: ExitCode.UNREACHABLE,
  overloaded: ExitCode.UNREACHABLE,
  unreachable: ExitCode.UNREACHABLE,
  rejected: ExitCode.BROKEN,
  broken: ExitCode.BROKEN,
};

/** The exit code of a run. */
export function exitCodeOfRun({ kind, error }: Pick<AgentResult, "kind" | "error">): number {
  return error instanceof ModelError ? BY_MODEL_ERROR[error.kind] : BY_END[kind];
}

/** Why a run did not come to its end; undefined where it did. */
export function runProblem({ kind, error, turns, usage, text }: AgentResult): string | undefined {
  switch (kind) {
    case "done":
      return undefined;
    case "turn_limit":
      return `the model was stopped after ${turns} turns: --max-turns lets it have more`;
    case "token_limit":
      return `the model was stopped after ${usage.inputTokens + usage.outputTokens} tokens`;
    case "refused":
      return `the model refused: ${text}`;
    case "canceled":
      return "stopped";
    case "error":
      return error?.message ?? "the model could not go on";
  }
}

/** What a run used, in a line: "2 turns, 1200 tokens in and 80 out, $0.0041". */
export function usageLine({ turns, usage }: Pick<AgentResult, "turns" | "usage">): string {
  const { inputTokens, cacheReadTokens, cacheWriteTokens, outputTokens, costUsdMicros } = usage;
  const read = inputTokens + cacheReadTokens + cacheWriteTokens;
  const cost = costUsdMicros === undefined ? "" : `, $${(costUsdMicros / 1e6).toFixed(4)}`;
  return `${turns} ${turns === 1 ? "turn" : "turns"}, ${read} tokens in and ${outputTokens} out${cost}`;
}

/** A run for a program. */
export function runJson({ kind, text, turns, usage, calls, error }: AgentResult): JsonObject {
  return {
    kind,
    text,
    turns,
    usage: { ...usage },
    calls: calls.map((call) => ({ ...call })),
    error: error?.message ?? null,
  };
}
