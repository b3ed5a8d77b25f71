import { Gauge, type Registry } from "prom-client";
import { type RunState, RunStateSchema } from "../../gen/ts/reeve/agent/v1/run_pb.ts";
import type { RunStore } from "./runs/store.ts";

/** Exports reeve_runs{state}: the runs of all replicas that are stored, counted when the metrics are read. */
export function measureRuns(registry: Registry | undefined, store: Pick<RunStore, "count">): void {
  if (registry === undefined) return;
  const gauge = new Gauge({
    name: "reeve_runs",
    help: "Runs of all replicas, by state",
    labelNames: ["state"],
    registers: [registry],
    async collect() {
      // A database that is unavailable has alerts of its own: the values stay as they were.
      const counted = await store.count().catch(() => undefined);
      if (counted === undefined) return;
      for (const { number, localName } of RunStateSchema.values) {
        if (number > 0) gauge.set({ state: localName.toLowerCase() }, counted.get(number as RunState) ?? 0);
      }
    },
  });
}
