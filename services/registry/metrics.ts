import { Counter, Gauge, type Registry as MetricsRegistry } from "prom-client";
import { type DecisionKind, DecisionKindSchema } from "../../gen/ts/reeve/call/v1/call_pb.ts";
import type { GovernedCall } from "./calls/governed-call.ts";
import { stateName } from "./calls/state.ts";

/** What calls are counted by. */
interface Ends {
  readonly tool: string;
  readonly decision: string;
  readonly state: string;
  count: number;
}

/** The registry's own metrics. */
export interface RegistryMetrics {
  /** A call was refused because its principal has as much open as it may. */
  quotaRefused(quota: string): void;
  /** A call ended. */
  ended(call: GovernedCall): void;
  /** Measures these from now on, at each scrape. */
  measure(what: { linkedHere(): number; openCalls(): number; claimed(): number; policyUnavailable(): boolean }): void;
}

const NONE: RegistryMetrics = {
  quotaRefused: () => undefined,
  ended: () => undefined,
  measure: () => undefined,
};

/**
 * Counts reeve_devices_linked, reeve_calls_open, reeve_policy_unavailable, reeve_calls_total{tool,decision,state}, reeve_calls_claimed_total
 * and reeve_quota_refusals_total{quota}, all of this replica. Without a place to put them nothing is counted.
 *
 * @param builtIn the tools that are named; all others, whose names devices choose, are "announced".
 */
export function createRegistryMetrics(
  registry: MetricsRegistry | undefined,
  builtIn: { has(tool: string): boolean },
): RegistryMetrics {
  if (registry === undefined) return NONE;
  const registers = [registry];
  const overQuota = new Counter({
    name: "reeve_quota_refusals_total",
    help: "Calls that were refused because their principal has as much open as it may, by quota",
    labelNames: ["quota"],
    registers,
  });
  return {
    quotaRefused: (quota) => overQuota.inc({ quota }),
    ended: countEnds(registers, builtIn),
    measure({ linkedHere, openCalls, claimed, policyUnavailable }) {
      gauge("reeve_policy_unavailable", "1 while policy does not answer this replica, and nothing is allowed", () =>
        policyUnavailable() ? 1 : 0,
      );
      gauge("reeve_devices_linked", "Devices that are linked to this replica", linkedHere);
      gauge("reeve_calls_open", "calls that this replica owns and that have not ended", openCalls);
      let counted = 0;
      new Counter({
        name: "reeve_calls_claimed_total",
        help: "Calls that this replica claimed from one that was gone",
        registers,
        collect() {
          this.inc(claimed() - counted);
          counted = claimed();
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

/** Counts are kept as numbers and become labels only when they are asked for. */
function countEnds(
  registers: MetricsRegistry[],
  builtIn: { has(tool: string): boolean },
): (call: GovernedCall) => void {
  const counts = new Map<string, Ends>();
  new Counter({
    name: "reeve_calls_total",
    help: "Calls that ended here, by tool, policy's decision and end state",
    labelNames: ["tool", "decision", "state"],
    registers,
    collect() {
      this.reset();
      for (const { count, ...labels } of counts.values()) this.inc(labels, count);
    },
  });
  return ({ spec: { tool: name }, status }) => {
    const { decision: decided, state: end } = status;
    const tool = builtIn.has(name) ? name : "announced";
    const decision = decided === undefined ? "none" : decisionName(decided.kind);
    const key = `${tool} ${decision} ${end}`;
    const known = counts.get(key);
    if (known === undefined) counts.set(key, { tool, decision, state: stateName(end).toLowerCase(), count: 1 });
    else known.count += 1;
  };
}

function decisionName(kind: DecisionKind): string {
  return DecisionKindSchema.value[kind]?.localName.toLowerCase() ?? "none";
}
