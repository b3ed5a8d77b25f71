import { createRandomHex } from "./random-hex.ts";

const randomHex = createRandomHex();

/**
 * 32 hex digits, of which the first 12 are the milliseconds since 1970, as in UUID version 7 (RFC 9562 §5.7), so that new
 * rows go to the end of an index instead of all over it, which makes inserts about twice as fast. The 80 random bits make
 * it unique; it is no secret.
 *
 * @param random so many random bytes as hex. Default: the system's.
 */
export function timeOrderedHex(nowMs: number, random = randomHex): string {
  return nowMs.toString(16).padStart(12, "0") + random(10);
}

/** A time-ordered id such as "call-0199a1b2c3d4" followed by 20 random hex digits. */
export function timeOrderedId(prefix: string, nowMs: number): string {
  return `${prefix}-${timeOrderedHex(nowMs)}`;
}
