import { expect, test } from "vitest";
import { sampleIn } from "./process-metrics.ts";

const TEXT = `# HELP reeve_devices_linked Devices that are linked to this replica
# TYPE reeve_devices_linked gauge
reeve_devices_linked 12
reeve_devices_linked_total 99
process_cpu_seconds_total 1.5e-3
`;

test("reads a metric's value, and not that of one whose name only begins so", () => {
  expect(sampleIn(TEXT, "reeve_devices_linked")).toBe(12);
  expect(sampleIn(TEXT, "process_cpu_seconds_total")).toBe(0.0015);
});

test("a missing metric counts as 0", () => {
  expect(sampleIn(TEXT, "nothing")).toBe(0);
});
