/** Numbers that look random and are the same for the same seed. */
export interface Random {
  /** At least 0 and less than 1. */
  next(): number;
  /** At least `from` and less than `to`. */
  between(from: number, to: number): number;
  /** One of them, each as likely as its weight says. */
  weighted<K extends string>(weights: Readonly<Record<K, number>>): K;
  /** One of them. Throws where there is none. */
  pick<T>(items: readonly T[]): T;
}

/** Mulberry32: small, and good enough to spread faults. @param seed a whole number; its lowest 32 bits count. */
export function createRandom(seed: number): Random {
  let state = seed >>> 0;
  const next = (): number => {
    state = (state + 0x6d2b79f5) >>> 0;
    let mixed = Math.imul(state ^ (state >>> 15), state | 1);
    mixed ^= mixed + Math.imul(mixed ^ (mixed >>> 7), mixed | 61);
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32;
  };
  return {
    next,
    between: (from, to) => from + next() * (to - from),
    weighted(weights) {
      const entries = Object.entries<number>(weights) as [keyof typeof weights, number][];
      let left = next() * entries.reduce((sum, [, weight]) => sum + weight, 0);
      for (const [name, weight] of entries) {
        left -= weight;
        if (left < 0) return name;
      }
      throw new RangeError("there is nothing to choose from");
    },
    pick(items) {
      if (items.length === 0) throw new RangeError("there is nothing to pick from");
      return items[Math.floor(next() * items.length)] as (typeof items)[number];
    },
  };
}
