import { randomFillSync } from "node:crypto";

/** Bytes that are asked of the operating system at a time: each asking costs as much as hashing a kilobyte. */
const POOL_BYTES = 4096;

/** A source of random bytes, as hex: so many bytes give twice as many digits. Bytes are given out once and wiped. */
export function createRandomHex(): (bytes: number) => string {
  const pool = Buffer.alloc(POOL_BYTES);
  let used = POOL_BYTES;
  return (bytes) => {
    if (bytes > POOL_BYTES) throw new RangeError(`at most ${POOL_BYTES} bytes at a time`);
    if (used + bytes > POOL_BYTES) {
      randomFillSync(pool);
      used = 0;
    }
    const from = used;
    used += bytes;
    const text = pool.toString("hex", from, used);
    pool.fill(0, from, used);
    return text;
  };
}
