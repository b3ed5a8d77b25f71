import { OutputStream } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";

/** Where the chunks of a file lie: four bytes for each, and a little more for every 256th. */
export interface ChunkIndex {
  readonly count: number;
  /** Where the next record begins, in bytes from the file's start. */
  readonly end: number;
  /** Adds the next record: so many bytes with its head, of this stream. */
  add(recordBytes: number, stream: OutputStream): void;
  /** Where a record begins; that after the last one ends the file. */
  offsetOf(sequence: number): number;
  about(sequence: number): { stream: OutputStream; recordBytes: number };
}

const STRIDE = 256;

/** Set in the length of a record of standard error. */
const STDERR_BIT = 2 ** 31;

export function createChunkIndex(): ChunkIndex {
  let records = new Uint32Array(64);
  /** Where each record begins whose number is a multiple of STRIDE. */
  const begins: number[] = [];
  let count = 0;
  let end = 0;
  const sizeOf = (sequence: number): number => (records[sequence] ?? 0) % STDERR_BIT;
  return {
    get count() {
      return count;
    },
    get end() {
      return end;
    },
    add(recordBytes, stream) {
      if (count === records.length) {
        const larger = new Uint32Array(count * 2);
        larger.set(records);
        records = larger;
      }
      if (count % STRIDE === 0) begins.push(end);
      records[count++] = recordBytes + (stream === OutputStream.STDERR ? STDERR_BIT : 0);
      end += recordBytes;
    },
    offsetOf(sequence) {
      if (sequence >= count) return end;
      const base = Math.floor(sequence / STRIDE);
      let offset = begins[base] ?? 0;
      for (let at = base * STRIDE; at < sequence; at++) offset += sizeOf(at);
      return offset;
    },
    about: (sequence) => ({
      stream: (records[sequence] ?? 0) >= STDERR_BIT ? OutputStream.STDERR : OutputStream.STDOUT,
      recordBytes: sizeOf(sequence),
    }),
  };
}
