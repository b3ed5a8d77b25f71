import type { Sample } from "./drive.ts";

/** The figures of one subject at one concurrency, over all rounds. */
export interface Figures {
  subject: string;
  concurrency: number;
  calls: number;
  callsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
  /** Processor time of server and client together, in microseconds. */
  cpuUsPerCall: number;
  /** The server's resident memory at the end, in MiB. */
  serverRssMiB: number;
}

/** One round's sample with what it cost. */
export interface Round {
  sample: Sample;
  cpuUs: number;
  rssBytes: number;
}

/** Rates are the median over the rounds, so that one disturbed round does not count; latencies are over all calls. */
export function figuresOf(subject: string, concurrency: number, rounds: readonly Round[]): Figures {
  const latencies = rounds.flatMap((round) => round.sample.latenciesMs).sort((a, b) => a - b);
  const rates = rounds.map(({ sample }) => (sample.latenciesMs.length / sample.elapsedMs) * 1000);
  const cpu = rounds.reduce((sum, round) => sum + round.cpuUs, 0);
  return {
    subject,
    concurrency,
    calls: latencies.length,
    callsPerSecond: median(rates),
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
    cpuUsPerCall: cpu / Math.max(1, latencies.length),
    serverRssMiB: Math.max(0, ...rounds.map((round) => round.rssBytes)) / 1024 / 1024,
  };
}

function median(values: readonly number[]): number {
  return quantile(
    [...values].sort((a, b) => a - b),
    0.5,
  );
}

function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0;
}
