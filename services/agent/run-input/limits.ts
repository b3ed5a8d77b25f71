/** How much a run may use. */
export interface RunLimits {
  /** The most turns of the model. Default 25. */
  maxTurns: number;
  /** The most tokens of all turns: input and output, without what came from the provider's cache. Default 200000. */
  maxTokens: number;
  /** The most tool uses. Further ones are answered with an error. Default 100. */
  maxToolCalls: number;
  /** How many calls of one turn run at the same time. Default 8. */
  maxParallel: number;
}

/** The limits where none are given. */
export const DEFAULT_LIMITS: Readonly<RunLimits> = Object.freeze({
  maxTurns: 25,
  maxTokens: 200_000,
  maxToolCalls: 100,
  maxParallel: 8,
});
