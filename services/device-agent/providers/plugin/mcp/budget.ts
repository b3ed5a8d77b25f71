/** What may come only so fast: a burst at once, and then as much as is filled up again. */
export interface Budget {
  /** Takes so much. False where that is more than there is, and from then on. */
  take(amount: number): boolean;
}

/** A full budget. `now` is a clock in milliseconds. */
export function createBudget(
  { burst, perSecond }: { burst: number; perSecond: number },
  now = () => performance.now(),
): Budget {
  let left = burst;
  let at = now();
  return {
    take(amount) {
      const time = now();
      left = Math.min(burst, left + ((time - at) / 1000) * perSecond) - amount;
      at = time;
      if (left < 0) left = Number.NEGATIVE_INFINITY;
      return left >= 0;
    },
  };
}
