import { Gauge, type Registry } from "prom-client";

/** How long a reader of the metrics waits for the count, in milliseconds, where nothing else is said. */
const LIMIT_MS = 1000;

/**
 * Exports a gauge that a database is asked for when the metrics are read. While the database does not say, the value is the last
 * one, NaN before the first: the other metrics are wanted most then.
 */
export function measureCount(
  registry: Registry | undefined,
  { name, help, limitMs = LIMIT_MS }: { name: string; help: string; limitMs?: number },
  count: () => Promise<number>,
): void {
  if (registry === undefined) return;
  let asked: Promise<void> | undefined;
  const gauge = new Gauge({
    name,
    help,
    registers: [registry],
    async collect() {
      // One question at a time: a database that hangs is not asked by every scrape anew.
      asked ??= ask().finally(() => {
        asked = undefined;
      });
      await Promise.race([asked, elapsed(limitMs)]);
    },
  });
  gauge.set(Number.NaN);

  async function ask(): Promise<void> {
    try {
      gauge.set(await count());
    } catch {
      // The database is unavailable: its own alerts say so.
    }
  }
}

function elapsed(ms: number): Promise<void> {
  return new Promise((resolve) => {
    setTimeout(resolve, ms).unref();
  });
}
