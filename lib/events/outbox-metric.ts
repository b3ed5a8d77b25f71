import type { Registry } from "prom-client";
import { measureCount } from "../store/measured-count.ts";

/** Exports reeve_outbox_waiting: how many events are stored and not yet published; see measureCount. */
export function measureOutbox(registry: Registry | undefined, pending: () => Promise<number>, limitMs?: number): void {
  const help = "Events that are stored and not yet published";
  measureCount(registry, { name: "reeve_outbox_waiting", help, ...(limitMs !== undefined && { limitMs }) }, pending);
}
