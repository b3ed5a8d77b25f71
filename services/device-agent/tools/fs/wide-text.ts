import { maskCutSecrets } from "../../../../lib/sanitize/sanitize.ts";
import type { Encoding } from "./encoding.ts";

/**
 * maskCutSecrets for UTF-16: secrets are looked for in the characters, each as one byte, and masked in both bytes of each.
 *
 * @param around the slice with what stands around it, both in whole characters.
 * @param from where the slice begins in `around`, in bytes.
 * @param to where it ends there.
 */
export function maskWide(around: Buffer, from: number, to: number, encoding: Encoding): Buffer {
  const isLow = encoding === "UTF-16LE";
  const units = Math.floor(around.length / 2);
  const narrow = Buffer.alloc(units);
  for (let unit = 0; unit < units; unit++) {
    const code = isLow ? around.readUInt16LE(unit * 2) : around.readUInt16BE(unit * 2);
    // No secret has other characters.
    narrow[unit] = code < 0x100 ? code : 0;
  }
  const [first, last] = [from / 2, Math.min(units, Math.floor(to / 2))];
  const masked = maskCutSecrets(narrow, first, last);
  const slice = Buffer.from(around.subarray(from, to));
  const star = isLow ? Uint8Array.of(0x2a, 0) : Uint8Array.of(0, 0x2a);
  for (const [unit, code] of masked.entries()) if (code !== narrow[first + unit]) slice.set(star, unit * 2);
  return slice;
}
