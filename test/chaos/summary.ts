import { percentile, type Return } from "./returns.ts";

/** What a run came to. */
export interface Summary {
  seed: number;
  calls: number;
  durationMs: number;
  /** By how they ended. */
  ends: ReadonlyMap<string, number>;
  /** By kind. */
  faults: ReadonlyMap<string, number>;
  /** Errors that callers met and tried again after, by kind. */
  errors: ReadonlyMap<string, number>;
  returns: readonly Return[];
  /** Calls that the registry gave up on although their device knows the end. */
  givenUp: number;
  /** Starts that failed and were tried again. */
  retries: readonly string[];
  /** Records in the audit log. */
  records: number;
}

/** Counts how often each word comes. */
export function tally(words: Iterable<string>): Map<string, number> {
  const counts = new Map<string, number>();
  for (const word of words) counts.set(word, (counts.get(word) ?? 0) + 1);
  return counts;
}

/** The summary as text, for the one who runs it. */
export function printSummary(summary: Summary): string {
  const { seed, calls, durationMs, ends, faults, errors, returns, givenUp, retries, records } = summary;
  const times = returns.map(({ ms }) => ms);
  const slowest = [...returns].sort((a, b) => b.ms - a.ms).slice(0, 3);
  return [
    `chaos: ${calls} calls in ${seconds(durationMs)}, ${records} records, seed ${seed} (REEVE_CHAOS_SEED)`,
    ...table("calls by end", ends),
    ...(givenUp === 0 ? [] : [`  of these ${givenUp} are UNKNOWN to the registry only; their devices know the end`]),
    ...table("faults", faults),
    ...(retries.length === 0 ? [] : [`  ${retries.length} starts failed and were tried again`]),
    ...table("errors that callers met", errors),
    `devices came back ${returns.length} times: p50 ${seconds(percentile(times, 50))}, p99 ${seconds(percentile(times, 99))}, max ${seconds(percentile(times, 100))}`,
    ...slowest.map(({ device, cause, ms }) => `  ${seconds(ms)} ${device} after ${cause}`),
  ].join("\n");
}

function table(title: string, counts: ReadonlyMap<string, number>): string[] {
  const rows = [...counts]
    .sort(([, a], [, b]) => b - a)
    .map(([name, count]) => `  ${String(count).padStart(6)} ${name}`);
  return [`${title}:`, ...rows];
}

function seconds(ms: number): string {
  return `${(ms / 1000).toFixed(2)} s`;
}
