import type { FleetFigures } from "./figures.ts";

const MIB = 1024 * 1024;

/** What is printed of a fleet, by the name of its line. */
const LINES: readonly [string, (figures: FleetFigures) => string][] = [
  ["enrolled a second", (one) => one.enrolledPerSecond.toFixed(0)],
  ["all attached, s", (one) => (one.attachMs / 1000).toFixed(2)],
  ["registry RSS with 1 device, MiB", (one) => (one.rssBeforeBytes / MIB).toFixed(0)],
  ["registry RSS with all, idle, MiB", (one) => (one.rssIdleBytes / MIB).toFixed(0)],
  ["RSS per idle device, KiB", (one) => (one.rssPerDeviceBytes / 1024).toFixed(0)],
  ["registry CPU, idle, %", (one) => (one.idleCpu * 100).toFixed(1)],
  ["devices' CPU, idle, %", (one) => (one.idleDriversCpu * 100).toFixed(1)],
  ["unary calls/s", (one) => one.unary.callsPerSecond.toFixed(0)],
  ["  p50 ms", (one) => one.unary.p50Ms.toFixed(1)],
  ["  p99 ms", (one) => one.unary.p99Ms.toFixed(1)],
  ["  registry CPU, µs/call", (one) => one.registryUsPerCall.toFixed(0)],
  ["calls/s on a stream", (one) => one.stream.callsPerSecond.toFixed(0)],
  ["  p50 ms", (one) => one.stream.p50Ms.toFixed(1)],
  ["  p99 ms", (one) => one.stream.p99Ms.toFixed(1)],
  ["after kill -9: registry ready, s", (one) => (one.recovery.readyMs / 1000).toFixed(2)],
  ["  half of the devices back, s", (one) => (one.recovery.halfMs / 1000).toFixed(2)],
  ["  99 % back, s", (one) => (one.recovery.most99Ms / 1000).toFixed(2)],
  ["  all back, s", (one) => (one.recovery.allMs / 1000).toFixed(2)],
  ["  dials per device", (one) => one.recovery.dialsPerDevice.toFixed(1)],
  ["  failed calls, one to each", (one) => String(one.recovery.failedCalls)],
];

/** One column for each size, so that a line shows how a cost grows. */
export function fleetTable(figures: readonly FleetFigures[]): string {
  const head = row(
    "devices",
    figures.map(({ devices }) => String(devices)),
  );
  const lines = LINES.map(([name, textOf]) => row(name, figures.map(textOf)));
  return [head, ...lines].join("\n");
}

function row(name: string, cells: readonly string[]): string {
  return [name.padEnd(34), ...cells.map((cell) => cell.padStart(10))].join("");
}
