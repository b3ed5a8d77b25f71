import type { Figures } from "./measure/figures.ts";

/** The figures of a section with their ratios to the subject that each is compared with. */
export function tableOf(title: string, figures: readonly Figures[]): string {
  const lines = [
    title,
    "in flight  subject                 calls/s    p50 ms    p99 ms  CPU µs/call  RSS MiB   rate ÷    p50 ÷  what",
  ];
  let last: number | undefined;
  for (const one of figures) {
    if (last !== undefined && last !== one.concurrency) lines.push("");
    last = one.concurrency;
    lines.push(lineOf(one, yardstickOf(one, figures)));
  }
  return lines.join("\n");
}

function lineOf(one: Figures, yardstick: Figures | undefined): string {
  return [
    String(one.concurrency).padStart(9),
    ` ${one.subject.padEnd(22)}`,
    one.callsPerSecond.toFixed(0).padStart(8),
    one.p50Ms.toFixed(2).padStart(9),
    one.p99Ms.toFixed(2).padStart(9),
    one.cpuUsPerCall.toFixed(0).padStart(12),
    one.serverRssMiB.toFixed(0).padStart(8),
    ratio(one.callsPerSecond, yardstick?.callsPerSecond).padStart(8),
    ratio(one.p50Ms, yardstick?.p50Ms).padStart(8),
    ` ${yardstick?.subject ?? ""}`,
  ]
    .join(" ")
    .trimEnd();
}

function yardstickOf({ against, concurrency }: Figures, figures: readonly Figures[]): Figures | undefined {
  if (against === undefined) return undefined;
  return figures.find((other) => other.subject === against && other.concurrency === concurrency);
}

function ratio(value: number, yardstick: number | undefined): string {
  return yardstick === undefined || yardstick === 0 ? "" : (value / yardstick).toFixed(2);
}
