import { createRandom } from "./random.ts";

/** What can break. `kill` is SIGKILL, `hole` a way that swallows everything, `cut` one that resets all connections. */
const KINDS = {
  "registry kill": 22,
  "policy kill": 18,
  "device kill": 14,
  "nats kill": 9,
  "postgres kill": 7,
  "proxy hole": 14,
  "proxy cut": 9,
  "registry pause": 4,
  "policy pause": 3,
};

/** How something breaks. */
export type FaultKind = keyof typeof KINDS;

/** Something that breaks and is mended. Times are milliseconds. */
export interface Fault {
  kind: FaultKind;
  /** Which of those that can break so: any number, taken modulo how many there are. */
  victim: number;
  /** From the end of the one before. */
  afterMs: number;
  /** From the break to the mend. */
  lastsMs: number;
}

/** How long each kind lasts: at least, and less than. A kill lasts longer by the start of what was killed. */
const LASTS: Record<FaultKind, [number, number]> = {
  "registry kill": [0, 2000],
  "policy kill": [0, 2000],
  "device kill": [0, 1500],
  "nats kill": [0, 3000],
  "postgres kill": [0, 2500],
  "proxy hole": [500, 6000],
  "proxy cut": [0, 1],
  // Longer than a lease lasts, so that a replica that goes on finds its calls claimed by others.
  "registry pause": [500, 12_000],
  "policy pause": [500, 8000],
};

/** One after another, for ever; the same for the same seed. */
export function* planFaults(seed: number): Generator<Fault, never> {
  const random = createRandom(seed);
  for (;;) {
    const kind = random.weighted(KINDS);
    yield {
      kind,
      victim: Math.floor(random.between(0, 1024)),
      afterMs: random.between(100, 1500),
      lastsMs: random.between(...LASTS[kind]),
    };
  }
}
