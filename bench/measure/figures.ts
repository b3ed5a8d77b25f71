import type { Subject } from "../subjects/subject.ts";
import type { Sample } from "./drive.ts";

/** The figures of calls. */
export interface CallFigures {
  calls: number;
  callsPerSecond: number;
  p50Ms: number;
  p99Ms: number;
}

/** The figures of one subject at one concurrency, over all rounds. */
export interface Figures extends CallFigures {
  subject: string;
  /** The subjects that it is compared with. */
  against: readonly string[];
  concurrency: number;
  /** Processor time of server and client together, in microseconds. */
  cpuUsPerCall: number;
  /** Of it the server's part. */
  serverCpuUsPerCall: number;
  /** The server's resident memory at the end, in MiB. */
  serverRssMiB: number;
}

/** One round's sample with what it cost. */
export interface Round {
  sample: Sample;
  cpuUs: number;
  /** Of it the server's part. */
  serverCpuUs: number;
  rssBytes: number;
}

/** Rates are the median over the rounds, so that one disturbed round does not count; latencies are over all calls. */
export function figuresOf(
  { name: subject, against = [] }: Pick<Subject, "name" | "against">,
  concurrency: number,
  rounds: readonly Round[],
): Figures {
  const calls = callFigures(rounds.map(({ sample }) => sample));
  const perCall = (cpuUs: (round: Round) => number): number =>
    rounds.reduce((sum, round) => sum + cpuUs(round), 0) / Math.max(1, calls.calls);
  return {
    subject,
    against,
    concurrency,
    ...calls,
    cpuUsPerCall: perCall((round) => round.cpuUs),
    serverCpuUsPerCall: perCall((round) => round.serverCpuUs),
    serverRssMiB: Math.max(0, ...rounds.map((round) => round.rssBytes)) / 1024 / 1024,
  };
}

/** What the samples of one thing come to. */
export function callFigures(samples: readonly Sample[]): CallFigures {
  const latencies = samples.flatMap(({ latenciesMs }) => latenciesMs).sort((a, b) => a - b);
  return {
    calls: latencies.length,
    callsPerSecond: median(samples.map((sample) => (sample.latenciesMs.length / sample.elapsedMs) * 1000)),
    p50Ms: quantile(latencies, 0.5),
    p99Ms: quantile(latencies, 0.99),
  };
}

/** The middle one; 0 where there is none. */
export function median(values: readonly number[]): number {
  return quantile(
    [...values].sort((a, b) => a - b),
    0.5,
  );
}

function quantile(sorted: readonly number[], q: number): number {
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * q))] ?? 0;
}
