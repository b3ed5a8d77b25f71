import { drive } from "../measure/drive.ts";
import { startServer } from "../measure/server-process.ts";
import { governedSubjects } from "../subjects/governed.ts";
import { splitOf } from "./categories.ts";

/** How calls are profiled. */
export interface ProfileOptions {
  concurrencies: readonly number[];
  /** How long each kind of call runs. */
  seconds: number;
  /** Gets each step in words. */
  onStep(text: string): void;
}

/** What one kind of call costs the server's thread. */
export interface Split {
  /** The subject and how many calls were in flight. */
  name: string;
  /** Microseconds a call, by category. */
  parts: Map<string, number>;
}

const WARM_UP_MS = 3000;

/** Drives the governed no-op, unary and over a stream, and splits the time of the server's thread. */
export async function profileCalls({ concurrencies, seconds, onStep }: ProfileOptions): Promise<Split[]> {
  const server = await startServer("governed");
  const splits: Split[] = [];
  for (const subject of governedSubjects(server).slice(0, 2)) {
    for (const concurrency of concurrencies) {
      const name = `${subject.name.replace("governed ", "")} ×${concurrency}`;
      onStep(`profiling ${name}`);
      await drive(() => subject.call(), concurrency, WARM_UP_MS);
      let calls = 0;
      const profile = await server.profile(async () => {
        const { latenciesMs } = await drive(() => subject.call(), concurrency, seconds * 1000);
        calls = latenciesMs.length;
      });
      splits.push({ name, parts: new Map([...splitOf(profile)].map(([part, us]) => [part, us / Math.max(1, calls)])) });
    }
  }
  await server.stop();
  return splits;
}

/** A row for each category, a column for each kind of call, in microseconds. */
export function splitTable(splits: readonly Split[]): string {
  const sum = ({ parts }: Split): number => [...parts.values()].reduce((total, us) => total + us, 0);
  const weight = (category: string): number =>
    splits.reduce((total, { parts }) => total + (parts.get(category) ?? 0), 0);
  const categories = [...new Set(splits.flatMap(({ parts }) => [...parts.keys()]))].sort(
    (a, b) => weight(b) - weight(a),
  );
  const row = (name: string, cells: readonly string[]) =>
    name.padEnd(30) + cells.map((cell) => cell.padStart(12)).join("");
  return [
    row(
      "µs of the server's thread",
      splits.map(({ name }) => name),
    ),
    ...categories.map((category) =>
      row(
        category,
        splits.map(({ parts }) => (parts.get(category) ?? 0).toFixed(0)),
      ),
    ),
    row(
      "all",
      splits.map((split) => sum(split).toFixed(0)),
    ),
  ].join("\n");
}
