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
  return [
    `chaos: ${calls} calls in ${seconds(durationMs)}, ${records} records, seed ${seed} (REEVE_CHAOS_SEED)`,
    ...table("calls by end", ends),
    ...(givenUp === 0 ? [] : [`  of these ${givenUp} are UNKNOWN to the registry only; their devices know the end`]),
    ...table("faults", faults),
    ...(retries.length === 0 ? [] : [`  ${retries.length} starts failed and were tried again`]),
    ...table("errors that callers met", errors),
    ...returnsOf(
      "devices came back",
      returns.filter(({ isMisled }) => !isMisled),
    ),
    ...returnsOf(
      "and while a registry was paused",
      returns.filter(({ isMisled }) => isMisled),
    ),
  ].join("\n");
}

/** How long they took, and which took longest. */
function returnsOf(title: string, returns: readonly Return[]): string[] {
  const times = returns.map(({ ms }) => ms);
  const [p50, p99, most] = [50, 99, 100].map((hundredths) => seconds(percentile(times, hundredths)));
  const slowest = [...returns].sort((a, b) => b.ms - a.ms).slice(0, 3);
  return [
    `${title} ${returns.length} times: p50 ${p50}, p99 ${p99}, max ${most}`,
    ...slowest.map(
      ({ device, cause, atMs, ms }) => `  ${seconds(ms)} ${device} after ${cause}, back at ${seconds(atMs)}`,
    ),
  ];
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
