import type { Figures } from "./measure/figures.ts";

/** Where the ratios of a line begin. */
const RATIOS_AT = 92;

/** The figures of a section with their ratios to the subject that each is compared with. */
export function tableOf(title: string, figures: readonly Figures[]): string {
  const lines = [
    title,
    "in flight  subject                 calls/s    p50 ms    p99 ms  CPU µs/call  server  RSS MiB   rate ÷    p50 ÷  what",
  ];
  let last: number | undefined;
  for (const one of figures) {
    if (last !== undefined && last !== one.concurrency) lines.push("");
    last = one.concurrency;
    const [first, ...more] = yardsticksOf(one, figures);
    lines.push(lineOf(one, first), ...more.map((other) => `${" ".repeat(RATIOS_AT)}${ratiosOf(one, other)}`));
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
    one.serverCpuUsPerCall.toFixed(0).padStart(7),
    one.serverRssMiB.toFixed(0).padStart(8),
    ...(yardstick === undefined ? [] : [ratiosOf(one, yardstick)]),
  ].join(" ");
}

function ratiosOf(one: Figures, yardstick: Figures): string {
  const rate = ratio(one.callsPerSecond, yardstick.callsPerSecond).padStart(8);
  return `${rate} ${ratio(one.p50Ms, yardstick.p50Ms).padStart(8)}  ${yardstick.subject}`;
}

function yardsticksOf({ against, concurrency }: Figures, figures: readonly Figures[]): Figures[] {
  return against.flatMap((name) =>
    figures.filter((other) => other.subject === name && other.concurrency === concurrency),
  );
}

function ratio(value: number, yardstick: number): string {
  return yardstick === 0 ? "" : (value / yardstick).toFixed(2);
}
