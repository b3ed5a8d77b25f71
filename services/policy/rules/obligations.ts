/** What a call has to keep to that a rule allows and no person approved. Empty: nothing. */
export interface Obligations {
  /** The longest that it may run, in milliseconds. */
  maxRunMs?: number;
}

/** All of them together: where several rules state one, the strictest counts. Pure. */
export function strictest(all: readonly Obligations[]): Obligations {
  const runs = all.flatMap(({ maxRunMs }) => maxRunMs ?? []);
  return runs.length === 0 ? {} : { maxRunMs: Math.min(...runs) };
}
