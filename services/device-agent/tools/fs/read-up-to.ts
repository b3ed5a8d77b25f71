import { read as readCallback } from "node:fs";
import { promisify } from "node:util";

const read = promisify(readCallback);

/** So many bytes of a file from a place on, or those up to its end. */
export async function readUpTo(fd: number, start: number, length: number): Promise<Buffer> {
  const buffer = Buffer.allocUnsafeSlow(length);
  let filled = 0;
  while (filled < length) {
    const { bytesRead } = await read(fd, buffer, filled, length - filled, start + filled);
    if (bytesRead === 0) break;
    filled += bytesRead;
  }
  return buffer.subarray(0, filled);
}
