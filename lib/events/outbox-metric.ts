import { Gauge, type Registry } from "prom-client";

/** Exports reeve_outbox_waiting: how many events are stored and not yet published, asked when somebody looks. */
export function measureOutbox(registry: Registry | undefined, pending: () => Promise<number>): void {
  if (registry === undefined) return;
  new Gauge({
    name: "reeve_outbox_waiting",
    help: "Events that are stored and not yet published",
    registers: [registry],
    async collect() {
      this.set(await pending());
    },
  });
}
