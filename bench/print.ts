import type { Figures } from "./measure/figures.ts";

const YARDSTICKS = { noop: "bare MCP", exec: "bare MCP exec" };

/** Prints the figures with their ratios to the bare MCP call that does the same work. */
export function printTable(figures: readonly Figures[]): void {
  const out = (line: string) => process.stdout.write(`${line}\n`);
  out("in flight  subject               calls/s    p50 ms    p99 ms  CPU µs/call  RSS MiB  rate ÷ MCP  p50 ÷ MCP");
  let last: number | undefined;
  for (const one of figures) {
    if (last !== undefined && last !== one.concurrency) out("");
    last = one.concurrency;
    const yardstick = figures.find((other) => isYardstick(one, other));
    out(
      [
        String(one.concurrency).padStart(9),
        ` ${one.subject.padEnd(20)}`,
        one.callsPerSecond.toFixed(0).padStart(8),
        one.p50Ms.toFixed(2).padStart(9),
        one.p99Ms.toFixed(2).padStart(9),
        one.cpuUsPerCall.toFixed(0).padStart(12),
        one.serverRssMiB.toFixed(0).padStart(8),
        ratio(one.callsPerSecond, yardstick?.callsPerSecond).padStart(11),
        ratio(one.p50Ms, yardstick?.p50Ms).padStart(10),
      ].join(" "),
    );
  }
}

function isYardstick(one: Figures, other: Figures): boolean {
  const exec = /exec|spawn/.test(one.subject);
  return other.concurrency === one.concurrency && other.subject === YARDSTICKS[exec ? "exec" : "noop"];
}

function ratio(value: number, yardstick: number | undefined): string {
  return yardstick === undefined || yardstick === 0 ? "" : (value / yardstick).toFixed(2);
}
