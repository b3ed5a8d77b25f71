import type { HostileReport, PhaseReport } from "./run-hostile.ts";

/** How long the health may take during the attack, in milliseconds: 99 of 100 times. */
const HEALTH_P99_MS = 250;

/** Memory of the second half may be higher than that of the first by this factor, and so many megabytes. */
const MEMORY_FACTOR = 1.25;
const MEMORY_SLACK_MB = 32;

/** The bounds that a run has broken, in words. None: the port holds. */
export function brokenBounds(report: HostileReport, { timed }: { timed: boolean }): string[] {
  const broken: string[] = [];
  if (report.ended !== undefined) broken.push(`the process ended by itself: ${report.ended}`);
  else if (report.exitCode !== 0) broken.push(`asked to end, the process ended with ${report.exitCode}`);
  if (report.uncaught > 0) broken.push(`${report.uncaught} errors of connections were caught by nothing but the guard`);
  for (const [name, { honest }] of [
    ["the attack", report.attack],
    ["the crowd", report.crowd],
  ] as const) {
    if (honest.healthFailed > 0) broken.push(`${honest.healthFailed} looks at /healthz failed during ${name}`);
    if (honest.failures.length > 0)
      broken.push(
        `${honest.failures.length} governed calls failed during ${name}, the first with ${honest.failures[0]}`,
      );
    if (honest.callsDone === 0) broken.push(`no governed call was made during ${name}`);
  }
  const p99 = quantile(report.attack.honest.healthMs, 0.99);
  if (timed && p99 > HEALTH_P99_MS)
    broken.push(`/healthz took ${ms(p99)} during the attack (p99), over ${HEALTH_P99_MS} ms`);
  const { first, second } = halves(report.rssMb);
  if (timed && second > first * MEMORY_FACTOR + MEMORY_SLACK_MB)
    broken.push(`memory grew from ${first} to ${second} MB`);
  return broken;
}

/** The figures of a run, a line each. */
export function reportText(report: HostileReport): string {
  const { rssMb, attack, crowd } = report;
  const kinds = Object.entries(report.byKind).sort(([, a], [, b]) => b - a);
  const { first, second } = halves(rssMb);
  return [
    `mutants        ${report.mutants} in ${attack.seconds.toFixed(0)} s (${kinds.map(([kind, count]) => `${kind} ${count}`).join(", ")})`,
    `process        ${report.ended === undefined ? "went on; ended with" : `ended by itself: ${report.ended};`} ${report.exitCode}; ${report.uncaught} uncaught errors`,
    `memory         start ${rssMb[0] ?? "?"}, end ${rssMb.at(-1) ?? "?"}, most ${rssMb.length === 0 ? "?" : Math.max(...rssMb)} MB (first half ${first}, second half ${second})`,
    `under attack   ${phaseText(attack)}`,
    `in a crowd     ${phaseText(crowd)}; ${crowd.connected} strangers connected, ${crowd.openAfter} still were after the wait`,
  ].join("\n");
}

function phaseText({ honest }: PhaseReport): string {
  const { healthMs, healthFailed, callsDone, failures } = honest;
  return (
    `/healthz ${healthMs.length} times, ${healthFailed} failed, p50 ${ms(quantile(healthMs, 0.5))}, p99 ${ms(quantile(healthMs, 0.99))}, ` +
    `longest ${ms(Math.max(0, ...healthMs))}; governed calls ${callsDone} done, ${failures.length} failed`
  );
}

/** The most memory in each half of a run, in megabytes. */
function halves(rssMb: readonly number[]): { first: number; second: number } {
  const middle = Math.ceil(rssMb.length / 2);
  return { first: Math.max(0, ...rssMb.slice(0, middle)), second: Math.max(0, ...rssMb.slice(middle)) };
}

function quantile(values: readonly number[], part: number): number {
  const sorted = values.toSorted((a, b) => a - b);
  return sorted[Math.min(sorted.length - 1, Math.floor(sorted.length * part))] ?? 0;
}

function ms(value: number): string {
  return `${value.toFixed(value < 10 ? 1 : 0)} ms`;
}
