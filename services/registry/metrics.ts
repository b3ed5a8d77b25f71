import { Counter, Gauge, type Registry as MetricsRegistry } from "prom-client";
import type { RefusedWhy } from "./replicas/sealed-message.ts";

/** The registry's own metrics. */
export interface RegistryMetrics {
  /** A message between replicas was refused. */
  refused(why: RefusedWhy): void;
  /** A call was refused because its principal has as much open as it may. */
  quotaRefused(quota: string): void;
  /** Measures these from now on, whenever somebody asks. */
  measure(what: { linkedHere(): number; openCalls(): number; adopted(): number }): void;
}

/**
 * Counts reeve_devices_linked, reeve_calls_open, reeve_calls_adopted_total, reeve_quota_refusals_total{quota} and
 * reeve_bus_messages_refused_total{why}, all of
 * this replica. Without a place to put them nothing is counted.
 */
export function createRegistryMetrics(registry: MetricsRegistry | undefined): RegistryMetrics {
  if (registry === undefined)
    return { refused: () => undefined, quotaRefused: () => undefined, measure: () => undefined };
  const registers = [registry];
  const refused = new Counter({
    name: "reeve_bus_messages_refused_total",
    help: "Messages between replicas that were refused, by why",
    labelNames: ["why"],
    registers,
  });
  const overQuota = new Counter({
    name: "reeve_quota_refusals_total",
    help: "Calls that were refused because their principal has as much open as it may, by quota",
    labelNames: ["quota"],
    registers,
  });
  return {
    quotaRefused: (quota) => overQuota.inc({ quota }),
    refused: (why) => refused.inc({ why }),
    measure({ linkedHere, openCalls, adopted }) {
      gauge("reeve_devices_linked", "Devices that are linked to this replica", linkedHere);
      gauge("reeve_calls_open", "Calls that this replica leads and that have not ended", openCalls);
      let told = 0;
      new Counter({
        name: "reeve_calls_adopted_total",
        help: "Calls that this replica took over from one that was gone",
        registers,
        collect() {
          this.inc(adopted() - told);
          told = adopted();
        },
      });
    },
  };

  function gauge(name: string, help: string, value: () => number): void {
    new Gauge({
      name,
      help,
      registers,
      collect() {
        this.set(value());
      },
    });
  }
}
