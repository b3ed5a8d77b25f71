/** Bounds how often something may go wrong for each remote address. */
export interface AddressRate {
  /** How long the address has to wait, in milliseconds; 0 where it may try now. */
  waitMs(address: string): number;
  /** One more time that it went wrong. */
  spend(address: string): void;
}

/** How often is too often. */
export interface AddressRateOptions {
  /** So many at once. */
  burst: number;
  /** And one more in so many milliseconds. */
  everyMs: number;
  /** Addresses that are remembered; with more, those that are not share what one has. Default 10000. */
  maxAddresses?: number;
  /** Milliseconds, never set back. Default the process's own clock. */
  now?: () => number;
}

/** What addresses share that are too many to be remembered. */
const OTHERS = "others";

/**
 * A token bucket for each address (kept as the moment when it is full again). An address that is full again is forgotten.
 */
export function createAddressRate(options: AddressRateOptions): AddressRate {
  const { burst, everyMs, maxAddresses = 10_000, now = () => performance.now() } = options;
  const fullAt = new Map<string, number>();
  const keyOf = (address: string): string => (fullAt.has(address) || fullAt.size < maxAddresses ? address : OTHERS);
  const forgetFull = (at: number): void => {
    for (const [address, full] of fullAt) if (full <= at) fullAt.delete(address);
  };
  return {
    waitMs(address) {
      const emptyFor = (fullAt.get(keyOf(address)) ?? 0) - now() - (burst - 1) * everyMs;
      return Math.max(0, Math.ceil(emptyFor));
    },
    spend(address) {
      const at = now();
      if (fullAt.size >= maxAddresses) forgetFull(at);
      const key = keyOf(address);
      fullAt.set(key, Math.max(at, fullAt.get(key) ?? 0) + everyMs);
    },
  };
}
