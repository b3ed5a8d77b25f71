import { setTimeout as sleep } from "node:timers/promises";
import { OutputStream } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { type ChunkFile, recordBytes } from "./chunk-file.ts";
import { type Chunk, type ChunkSource, MAX_CHUNK_BYTES } from "./chunk-source.ts";

/** What a call prints, as it is kept while it runs. */
export interface Recording extends ChunkSource {
  /** Takes the next bytes. A promise asks the program to wait until it resolves. */
  push(stream: OutputStream, bytes: Uint8Array): Promise<void> | undefined;
  /** Makes a chunk of what was printed since the last one. */
  cut(): void;
  /** A reader has read up to this number. */
  noteRead(next: number): void;
  /** How many chunks were printed, kept or not. */
  readonly printed: number;
  /** How many bytes are kept. */
  readonly keptBytes: number;
  /** How many bytes had been printed where no more could be kept; undefined while all are. */
  readonly truncatedAtByte: number | undefined;
  /** No more comes. Resolves when all that is kept has been written. */
  end(): Promise<void>;
  /** The chunks, where they are few enough to be kept elsewhere than in a file. */
  readonly few: readonly Chunk[] | undefined;
}

export interface RecordingOptions {
  /** Whether anybody follows the output as it comes: then it is not gathered. */
  isFollowed(): boolean;
  /** Gets each chunk when it is cut, also those that are not kept. */
  onChunk(chunk: Chunk): void;
  /** Takes room for so many bytes on disk; false: there is none. */
  reserve(bytes: number): boolean;
  /** Makes the file, once. */
  createFile(): Promise<ChunkFile>;
  /** Receives why no more could be written. */
  onError(error: unknown): void;
}

/** What a call prints is kept in the ledger, with its end, up to so many bytes; more is in a file. */
export const FEW_BYTES = 64 * 1024;

/** How long what was printed waits for more before it is a chunk and is written, in milliseconds. */
const GATHER_MS = 250;

/** How much waits to be written before the program has to, in bytes. */
const UNWRITTEN_BYTES = 1024 * 1024;

/** How much is written at a time, in bytes. */
const WRITE_BYTES = 512 * 1024;

/** From so many chunks on, even what is followed is gathered: a number takes memory. */
const MANY_CHUNKS = 256 * 1024;

/**
 * How long a program that has printed more than can be kept waits for a reader that is still catching up, in milliseconds
 * since it last read; for one that has caught up and is about to follow it waits only as long as that takes.
 */
const [READER_MS, ARRIVED_MS, LOOK_MS] = [60_000, 1000, 50];

/** How many chunks are held for one while a program prints on although it is asked to wait. */
const MAX_HELD = 16;

/** Numbers what a call prints and keeps it, first in memory and then in a file. */
export function createRecording(options: RecordingOptions): Recording {
  const { isFollowed, onChunk, reserve, createFile, onError } = options;
  let parts: Uint8Array[] = [];
  let partsStream: OutputStream = OutputStream.STDOUT;
  let partsBytes = 0;
  let printed = 0;
  let keptBytes = 0;
  let truncatedAtByte: number | undefined;
  /** Kept chunks that are not in the file. */
  let unwritten: Chunk[] = [];
  let unwrittenBytes = 0;
  let few: Chunk[] | undefined = [];
  let file: ChunkFile | undefined;
  let writing: Promise<void> | undefined;
  let gathering: NodeJS.Timeout | undefined;
  /** Chunks that there is no room for, while the program waits for a reader. */
  let held: Chunk[] = [];
  let holding: Promise<void> | undefined;
  let hasEnded = false;
  let lastRead = { atMs: Number.NEGATIVE_INFINITY, next: 0 };

  const writeSome = async (): Promise<void> => {
    let bytes = 0;
    let count = 0;
    while (count < unwritten.length && (count === 0 || bytes < WRITE_BYTES))
      bytes += (unwritten[count++] as Chunk).data.length;
    file ??= await createFile();
    await file.append(unwritten.slice(0, count));
    unwritten = unwritten.slice(count);
    unwrittenBytes -= bytes;
  };
  const write = async (): Promise<void> => {
    try {
      while (unwritten.length > 0) await writeSome();
    } catch (error: unknown) {
      onError(error);
      // What is not in the file is lost: it is as if it had not been kept.
      keptBytes -= unwrittenBytes;
      [unwritten, unwrittenBytes, few] = [[], 0, undefined];
      truncatedAtByte ??= keptBytes;
    }
    writing = undefined;
  };
  const keep = (chunk: Chunk): void => {
    keptBytes += chunk.data.length;
    unwrittenBytes += chunk.data.length;
    unwritten.push(chunk);
    few?.push(chunk);
    if (keptBytes > FEW_BYTES) few = undefined;
    if (unwrittenBytes >= MAX_CHUNK_BYTES) writing ??= write();
    onChunk(chunk);
  };
  /** Whether a reader is catching up with what is printed, or has just done so. */
  const isAwaited = (): boolean => {
    const sinceMs = performance.now() - lastRead.atMs;
    return !hasEnded && !isFollowed() && sinceMs < (lastRead.next < printed - held.length ? READER_MS : ARRIVED_MS);
  };
  const hold = async (): Promise<void> => {
    while (isAwaited() && held.length < MAX_HELD) await sleep(LOOK_MS);
    letGo();
  };
  /** What there is no room for goes to those who follow, and is lost for others. */
  const letGo = (): void => {
    truncatedAtByte ??= keptBytes;
    const chunks = held;
    [held, holding] = [[], undefined];
    for (const chunk of chunks) onChunk(chunk);
  };
  const take = (stream: OutputStream, data: Uint8Array): void => {
    const chunk = { sequence: printed++, stream, data };
    if (holding === undefined && truncatedAtByte === undefined && reserve(recordBytes(data.length))) {
      keep(chunk);
      return;
    }
    held.push(chunk);
    if (truncatedAtByte === undefined && isAwaited()) holding ??= hold();
    else letGo();
  };
  const cut = (): void => {
    if (partsBytes === 0) return;
    const data = parts.length === 1 ? (parts[0] as Uint8Array) : Buffer.concat(parts);
    [parts, partsBytes] = [[], 0];
    take(partsStream, data);
  };
  const flush = (): void => {
    gathering = undefined;
    cut();
    if (unwritten.length > 0) writing ??= write();
  };
  const gather = (stream: OutputStream, bytes: Uint8Array): void => {
    if (partsBytes > 0 && (stream !== partsStream || partsBytes + bytes.length > MAX_CHUNK_BYTES)) cut();
    parts.push(bytes);
    partsStream = stream;
    partsBytes += bytes.length;
    if (partsBytes >= MAX_CHUNK_BYTES || (isFollowed() && printed < MANY_CHUNKS)) cut();
    gathering ??= setTimeout(flush, GATHER_MS);
  };

  return {
    get count() {
      return (file?.count ?? 0) + unwritten.length;
    },
    about(sequence) {
      const written = file?.count ?? 0;
      if (sequence < written && file !== undefined) return file.about(sequence);
      const { stream, data } = unwritten[sequence - written] as Chunk;
      return { stream, bytes: data.length };
    },
    async load(from, until) {
      // Before anything is awaited: what is unwritten now may be in the file by then.
      const written = file?.count ?? 0;
      const inMemory = unwritten.slice(Math.max(0, from - written), Math.max(0, until - written));
      if (file === undefined || from >= written) return inMemory;
      return [...(await file.load(from, Math.min(until, written))), ...inMemory];
    },
    push(stream, bytes) {
      // A tool that did not heed its end: its call has one by now.
      if (hasEnded) return undefined;
      for (let at = 0; at < bytes.length; at += MAX_CHUNK_BYTES)
        gather(stream, bytes.subarray(at, at + MAX_CHUNK_BYTES));
      return holding ?? (unwrittenBytes > UNWRITTEN_BYTES ? writing : undefined);
    },
    cut,
    noteRead(next) {
      lastRead = { atMs: performance.now(), next };
    },
    get printed() {
      return printed - held.length;
    },
    get keptBytes() {
      return keptBytes;
    },
    get truncatedAtByte() {
      return truncatedAtByte;
    },
    async end() {
      hasEnded = true;
      clearTimeout(gathering);
      cut();
      if (held.length > 0) letGo();
      if (few === undefined && unwritten.length > 0) writing ??= write();
      await writing;
    },
    get few() {
      return few;
    },
  };
}
