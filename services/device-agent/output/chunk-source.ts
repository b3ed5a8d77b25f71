import type { OutputStream } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";

/** Something that a call printed, as it was printed. */
export interface Chunk {
  /** Its number within the call, from 0. */
  sequence: number;
  stream: OutputStream;
  /** At most MAX_CHUNK_BYTES. */
  data: Uint8Array;
}

/** The most bytes of one chunk, as in device_agent_service.proto. */
export const MAX_CHUNK_BYTES = 64 * 1024;

/** The first chunks of a call, as many as are kept. */
export interface ChunkSource {
  /** How many there are. */
  readonly count: number;
  /** A chunk's stream and length in bytes. */
  about(sequence: number): { stream: OutputStream; bytes: number };
  /** The chunks from one number up to, and without, another one. */
  load(from: number, until: number): Promise<readonly Chunk[]>;
}

/** Which chunks to read. */
export interface ReadRange {
  /** The number of the first one. */
  from: number;
  /** About how many bytes; one chunk at least. */
  maxBytes: number;
  /** How many bytes of each stream besides that came before. */
  contextBytes: number;
}

/** The chunks of a range, with its context before them. */
export async function readRange(source: ChunkSource, range: ReadRange): Promise<{ chunks: Chunk[]; next: number }> {
  const next = endOf(source, range);
  const context = contextOf(source, range);
  const runs = [...context, { from: Math.min(range.from, next), until: next }];
  const loaded = await Promise.all(
    runs.filter(({ from, until }) => from < until).map(({ from, until }) => source.load(from, until)),
  );
  return { chunks: loaded.flat(), next };
}

function endOf(source: ChunkSource, { from, maxBytes }: ReadRange): number {
  let bytes = 0;
  let next = from;
  while (next < source.count) {
    bytes += source.about(next).bytes;
    if (bytes > maxBytes && next > from) break;
    next++;
  }
  return next;
}

/** The runs of chunks before the range that hold enough of each stream; what lies between belongs to a stream that has enough. */
function contextOf(source: ChunkSource, { from, contextBytes }: ReadRange): { from: number; until: number }[] {
  const wanted = new Map<OutputStream, number>();
  const runs: { from: number; until: number }[] = [];
  const streams = 2;
  let done = 0;
  for (let at = Math.min(from, source.count) - 1; at >= 0 && contextBytes > 0 && done < streams; at--) {
    const { stream, bytes } = source.about(at);
    const missing = wanted.get(stream) ?? contextBytes;
    if (missing <= 0) continue;
    wanted.set(stream, missing - bytes);
    if (missing <= bytes) done++;
    const last = runs.at(-1);
    if (last !== undefined && last.from === at + 1) last.from = at;
    else runs.push({ from: at, until: at + 1 });
  }
  return runs.reverse();
}

/** Chunks in memory. */
export function chunksInMemory(chunks: readonly Chunk[]): ChunkSource {
  return {
    count: chunks.length,
    about(sequence) {
      const chunk = chunks[sequence] as Chunk;
      return { stream: chunk.stream, bytes: chunk.data.length };
    },
    load: async (from, until) => chunks.slice(from, until),
  };
}
