/** Keeps the head and the tail of a stream of bytes. */
export interface Capture {
  /** Takes the next bytes. Never blocks and never grows past the limit. */
  push(chunk: Uint8Array): void;
  /** What was kept, as text. */
  end(): CapturedText;
}

export interface CapturedText {
  /** The text, with a line that says how much was left out in the middle. */
  text: string;
  /** True when bytes were left out. */
  truncated: boolean;
}

/**
 * A capture of at most `limit` bytes: everything up to the limit, else the first half and the last half. Cuts fall
 * between characters; bytes that are no UTF-8 become U+FFFD. A single chunk is kept without a copy.
 */
export function createCapture(limit: number): Capture {
  const headBytes = Math.ceil(limit / 2);
  const tailBytes = limit - headBytes;
  let total = 0;
  let kept: Buffer = Buffer.alloc(0);

  const append = (chunk: Uint8Array): void => {
    const needed = Math.min(total + chunk.length, limit);
    if (kept.length < needed) kept = grow(kept, Math.min(limit, Math.max(needed, kept.length * 2, 4096)));
    kept.set(chunk.subarray(0, limit - total), total);
  };
  const wrap = (chunk: Uint8Array): void => {
    if (tailBytes === 0) return;
    const start = Math.max(0, chunk.length - tailBytes);
    let place = headBytes + ((total + start - headBytes) % tailBytes);
    for (let from = start; from < chunk.length; place = headBytes) {
      const count = Math.min(chunk.length - from, limit - place);
      kept.set(chunk.subarray(from, from + count), place);
      from += count;
    }
  };

  return {
    push(chunk) {
      if (total === 0 && chunk.length < limit) {
        kept = Buffer.from(chunk.buffer, chunk.byteOffset, chunk.length);
        total = chunk.length;
        return;
      }
      const fits = Math.max(0, Math.min(chunk.length, limit - total));
      if (fits > 0) append(chunk.subarray(0, fits));
      total += fits;
      if (fits === chunk.length) return;
      const rest = chunk.subarray(fits);
      wrap(rest);
      total += rest.length;
    },
    end() {
      if (total <= limit) return { text: kept.toString("utf8", 0, total), truncated: false };
      const seam = headBytes + (tailBytes === 0 ? 0 : (total - headBytes) % tailBytes);
      const head = cutTail(kept.subarray(0, headBytes));
      const tail = cutHead(Buffer.concat([kept.subarray(seam, limit), kept.subarray(headBytes, seam)]));
      const left = total - head.length - tail.length;
      const text = `${head.toString("utf8")}\n[... ${left} bytes left out ...]\n${tail.toString("utf8")}`;
      return { text, truncated: true };
    },
  };
}

function grow(old: Buffer, size: number): Buffer {
  const bigger = Buffer.allocUnsafeSlow(size);
  bigger.set(old);
  return bigger;
}

/** Drops an incomplete character at the end. */
export function cutTail(bytes: Buffer): Buffer {
  for (let back = 1; back <= Math.min(3, bytes.length); back++) {
    const byte = bytes[bytes.length - back] ?? 0;
    if (byte < 0x80) return bytes;
    if (byte >= 0xc0) return back < sequenceLength(byte) ? bytes.subarray(0, bytes.length - back) : bytes;
  }
  return bytes;
}

/** Drops what is left of a character whose start is missing. */
function cutHead(bytes: Buffer): Buffer {
  let start = 0;
  while (start < Math.min(3, bytes.length) && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return bytes.subarray(start);
}

function sequenceLength(lead: number): number {
  if (lead >= 0xf0) return 4;
  return lead >= 0xe0 ? 3 : 2;
}
