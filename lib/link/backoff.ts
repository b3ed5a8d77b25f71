/** The longest wait after the first failure, in milliseconds. */
const FIRST_MS = 20;

/**
 * How long to wait before a new try, in milliseconds: anything from nothing to a bound that doubles from 20 ms with each
 * failure in a row, up to `maxMs`. At random over the whole of it (full jitter), so that many who lost the same server
 * do not come back at the same moment.
 */
export function fullJitter(failures: number, maxMs: number): number {
  return Math.random() * Math.min(maxMs, FIRST_MS * 2 ** Math.min(failures, 20));
}
