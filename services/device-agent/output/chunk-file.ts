import { type FileHandle, open } from "node:fs/promises";
import { OutputStream } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { SEAL_BYTES } from "../../../lib/identity/seal.ts";
import type { Sealer } from "../../../lib/identity/sealer.ts";
import { type ChunkIndex, createChunkIndex } from "./chunk-index.ts";
import { type Chunk, type ChunkSource, MAX_CHUNK_BYTES } from "./chunk-source.ts";

/** A file with the chunks of one call, each sealed for itself. */
export interface ChunkFile extends ChunkSource {
  readonly index: ChunkIndex;
  /** Adds chunks, numbered as they follow. One at a time. Not synced: what the agent wrote outlives the agent, not the machine. */
  append(chunks: readonly Chunk[]): Promise<void>;
  close(): Promise<void>;
}

/** Before each sealed chunk: its length in four bytes, the highest bit set for standard error. */
const HEAD_BYTES = 4;
const STDERR_BIT = 2 ** 31;

/** What a chunk of so many bytes takes in a file. */
export function recordBytes(bytes: number): number {
  return HEAD_BYTES + SEAL_BYTES + bytes;
}

/** How much is read at a time while a file is looked through, in bytes: where chunks are large, little more than their heads. */
const [SCAN_SMALL, SCAN_LARGE] = [4096, 256 * 1024];

/** Makes an empty file, also where there was one. */
export async function createChunkFile(path: string, callId: string, sealer: Sealer): Promise<ChunkFile> {
  return chunkFile(await open(path, "w+", 0o600), createChunkIndex(), callId, sealer);
}

/**
 * Opens the file of a call that has ended, up to its last whole chunk: the agent may have been killed while it wrote. Undefined
 * where there is none.
 *
 * @param known its index, where it was read before.
 */
export async function openChunkFile(
  path: string,
  callId: string,
  sealer: Sealer,
  known: ChunkIndex | undefined,
): Promise<ChunkFile | undefined> {
  const handle = await open(path, "r").catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
  return handle && chunkFile(handle, known ?? (await scan(handle)), callId, sealer);
}

function chunkFile(handle: FileHandle, index: ChunkIndex, callId: string, sealer: Sealer): ChunkFile {
  const nameOf = (sequence: number): string => `output/${callId}/${sequence}`;
  return {
    get count() {
      return index.count;
    },
    index,
    about(sequence) {
      const { stream, recordBytes: bytes } = index.about(sequence);
      return { stream, bytes: Math.max(0, bytes - HEAD_BYTES - SEAL_BYTES) };
    },
    async append(chunks) {
      const records = chunks.map((chunk) => recordOf(chunk, sealer.seal(nameOf(chunk.sequence), chunk.data)));
      let total = 0;
      for (const record of records) total += record.length;
      const position = index.end;
      const { bytesWritten } = await handle.write(Buffer.concat(records), 0, total, position);
      if (bytesWritten !== total) throw new Error(`only ${bytesWritten} of ${total} bytes were written`);
      for (const [at, record] of records.entries()) index.add(record.length, (chunks[at] as Chunk).stream);
    },
    async load(from, until) {
      const begin = index.offsetOf(from);
      const bytes = Buffer.allocUnsafe(index.offsetOf(until) - begin);
      await readFully(handle, bytes, begin);
      const chunks: Chunk[] = [];
      for (let sequence = from, at = 0; sequence < until; sequence++) {
        const { stream, recordBytes: size } = index.about(sequence);
        const data = sealer.open(nameOf(sequence), bytes.subarray(at + HEAD_BYTES, at + size));
        chunks.push({ sequence, stream, data });
        at += size;
      }
      return chunks;
    },
    close: () => handle.close(),
  };
}

function recordOf({ stream }: Chunk, sealed: Uint8Array): Buffer {
  const record = Buffer.allocUnsafe(HEAD_BYTES + sealed.length);
  record.writeUInt32LE(sealed.length + (stream === OutputStream.STDERR ? STDERR_BIT : 0), 0);
  record.set(sealed, HEAD_BYTES);
  return record;
}

async function readFully(handle: FileHandle, bytes: Buffer, position: number): Promise<void> {
  for (let at = 0; at < bytes.length; ) {
    const { bytesRead } = await handle.read(bytes, at, bytes.length - at, position + at);
    if (bytesRead === 0) throw new Error("the file with the output has become shorter");
    at += bytesRead;
  }
}

/** The index of a file up to its last whole record. */
async function scan(handle: FileHandle): Promise<ChunkIndex> {
  const { size } = await handle.stat();
  const index = createChunkIndex();
  const block = Buffer.allocUnsafe(SCAN_LARGE);
  for (let length = SCAN_SMALL; index.end + HEAD_BYTES <= size; ) {
    const begin = index.end;
    const { bytesRead } = await handle.read(block, 0, length, begin);
    if (!addRecords(index, block.subarray(0, bytesRead), begin, size)) return index;
    length = index.end - begin > SCAN_SMALL ? SCAN_SMALL : SCAN_LARGE;
  }
  return index;
}

/** Adds the records whose heads are in a block. False at the end, or at one that is not whole. */
function addRecords(index: ChunkIndex, block: Buffer, begin: number, size: number): boolean {
  if (block.length < HEAD_BYTES) return false;
  while (index.end - begin + HEAD_BYTES <= block.length) {
    const head = block.readUInt32LE(index.end - begin);
    const bytes = HEAD_BYTES + (head % STDERR_BIT);
    const isWhole = index.end + bytes <= size && bytes > recordBytes(0) && bytes <= recordBytes(MAX_CHUNK_BYTES);
    if (!isWhole) return false;
    index.add(bytes, head >= STDERR_BIT ? OutputStream.STDERR : OutputStream.STDOUT);
  }
  return true;
}
