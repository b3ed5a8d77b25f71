/** What one run of one subject at one concurrency gave. */
export interface Sample {
  /** How long each call took, in milliseconds. */
  latenciesMs: number[];
  elapsedMs: number;
}

/** Keeps `concurrency` calls in flight for `durationMs` and times each. */
export async function drive(call: () => Promise<void>, concurrency: number, durationMs: number): Promise<Sample> {
  const latenciesMs: number[] = [];
  const start = performance.now();
  const end = start + durationMs;
  const worker = async () => {
    for (let began = performance.now(); began < end; ) {
      await call();
      const now = performance.now();
      latenciesMs.push(now - began);
      began = now;
    }
  };
  await Promise.all(Array.from({ length: concurrency }, worker));
  return { latenciesMs, elapsedMs: performance.now() - start };
}
