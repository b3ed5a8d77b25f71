import type { Usage } from "../providers/model.ts";
import type { RunLimits } from "../run-input/limits.ts";

/** What a run has used before its first turn. */
export const NO_USAGE: Readonly<Usage> = Object.freeze({
  inputTokens: 0,
  outputTokens: 0,
  cacheReadTokens: 0,
  cacheWriteTokens: 0,
  costUsdMicros: 0,
});

/** What two turns used together. What they cost is known where both costs are. */
export function addUsage(a: Usage, b: Usage): Usage {
  const { costUsdMicros: first } = a;
  const { costUsdMicros: second } = b;
  return {
    inputTokens: a.inputTokens + b.inputTokens,
    outputTokens: a.outputTokens + b.outputTokens,
    cacheReadTokens: a.cacheReadTokens + b.cacheReadTokens,
    cacheWriteTokens: a.cacheWriteTokens + b.cacheWriteTokens,
    ...(first !== undefined && second !== undefined ? { costUsdMicros: first + second } : {}),
  };
}

/** The limit that a run has reached, if any. What came from the provider's cache does not count. */
export function reachedLimit(limits: RunLimits, turns: number, usage: Usage): "turn_limit" | "token_limit" | undefined {
  if (turns >= limits.maxTurns) return "turn_limit";
  const tokens = usage.inputTokens + usage.cacheWriteTokens + usage.outputTokens;
  return tokens >= limits.maxTokens ? "token_limit" : undefined;
}
