const DECIMAL = /^(?:0|[1-9][0-9]{0,15})$/;

/** Standard base64 with padding (RFC 4648 §4). */
export function toBase64(bytes: Uint8Array): string {
  return Buffer.from(bytes.buffer, bytes.byteOffset, bytes.byteLength).toString("base64");
}

/** Reads standard base64; undefined unless it is the one text that `toBase64` gives for those bytes. */
export function fromBase64(text: string): Uint8Array | undefined {
  const bytes = Buffer.from(text, "base64");
  return bytes.toString("base64") === text ? bytes : undefined;
}

/** Reads a whole number from 0 to 2^53 - 1 in decimal; undefined for signs, leading zeroes and all else. */
export function fromDecimal(text: string): number | undefined {
  const value = DECIMAL.test(text) ? Number(text) : Number.NaN;
  return Number.isSafeInteger(value) ? value : undefined;
}
