import { setTimeout as sleep } from "node:timers/promises";
import { type Fault, planFaults } from "./faults.ts";
import type { Part } from "./parts.ts";

/** Breaks parts and mends them, until it is stopped. */
export interface Breaker {
  /** How often each kind of fault happened. */
  readonly counts: ReadonlyMap<string, number>;
  /** Breaks no more; resolves when everything is mended. */
  stop(): Promise<void>;
}

/** How many things are broken at a time, at most. */
const LANES = 3;

/**
 * Begins to break parts, each lane one after another. A part that is broken already is left alone: so never more than
 * three are, and all replicas of one service only for a while.
 *
 * @param say learns of each fault in words.
 * @param onBroken learns of each fault, before it happens.
 */
export function breakParts(
  parts: readonly Part[],
  seed: number,
  say: (line: string) => void,
  onBroken: (part: Part, fault: Fault) => void,
): Breaker {
  const stopping = new AbortController();
  const started = performance.now();
  const counts = new Map<string, number>();

  const run = async (lane: number): Promise<void> => {
    for (const fault of planFaults(seed * LANES + lane)) {
      await sleep(fault.afterMs, undefined, { signal: stopping.signal }).catch(() => undefined);
      if (stopping.signal.aborted) return;
      const candidates = parts.filter(({ kind }) => kind === fault.kind.split(" ")[0]);
      const part = candidates[fault.victim % candidates.length];
      if (!part?.up) continue;
      const at = ((performance.now() - started) / 1000).toFixed(1);
      say(`${at} s: ${fault.kind} of ${part.name} for ${(fault.lastsMs / 1000).toFixed(1)} s`);
      counts.set(fault.kind, (counts.get(fault.kind) ?? 0) + 1);
      onBroken(part, fault);
      await happen(part, fault);
    }
  };
  const lanes = Array.from({ length: LANES }, (_, lane) => run(lane));

  return {
    counts,
    async stop() {
      stopping.abort();
      await Promise.all(lanes);
    },
  };
}

async function happen(part: Part, { kind, lastsMs }: Fault): Promise<void> {
  if (kind.endsWith("cut")) return part.reset();
  if (kind.endsWith("kill")) await part.kill();
  else part.pause();
  await sleep(lastsMs);
  if (kind.endsWith("kill")) await part.start();
  else part.resume();
}
