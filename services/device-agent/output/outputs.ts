import { clone, create } from "@bufbuild/protobuf";
import {
  type ExecutionOutput,
  ExecutionOutputSchema,
  type LedgerOutput,
  LedgerOutputSchema,
  OutputKept,
  type OutputSummary,
  OutputSummarySchema,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { Sealer } from "../../../lib/identity/sealer.ts";
import { type ChunkFile, createChunkFile, openChunkFile } from "./chunk-file.ts";
import type { ChunkIndex } from "./chunk-index.ts";
import { type Chunk, type ChunkSource, chunksInMemory, type ReadRange, readRange } from "./chunk-source.ts";
import type { OutputFolder } from "./output-folder.ts";
import { createRecording, type Recording, type RecordingOptions } from "./recording.ts";

/** A part of what a call has printed. */
export interface OutputPart {
  /** In order; those below the number that was asked for are context. */
  chunks: ExecutionOutput[];
  /** The number to go on with. */
  next: number;
  summary: OutputSummary;
}

/** What the ledger says of a call. */
export interface KnownCall {
  open: boolean;
  output: LedgerOutput | undefined;
}

/** What a device's calls have printed. */
export interface Outputs {
  /** Begins to record a call. It is read from the recording until that is closed. */
  record(callId: string, listener: Pick<RecordingOptions, "isFollowed" | "onChunk">): OutputRecorder;
  /** A part of what a call has printed; the ledger knows it or not. */
  read(callId: string, range: ReadRange, known: KnownCall | undefined): Promise<OutputPart>;
  /** What is known of it, without reading it. */
  summaryOf(callId: string, known: KnownCall): OutputSummary;
}

/** The recording of one call. */
export interface OutputRecorder extends Pick<Recording, "push"> {
  /** No more comes. Resolves with what the ledger is to keep, when all the rest is written. */
  end(): Promise<LedgerOutput>;
  /** The ledger has it: the recording is not needed any more. */
  close(): void;
}

/** Of how many files of ended calls the index is kept for the next part that is read of them. */
const MAX_INDEXES = 8;

/** @param onError receives why a call's output could not be written any further. */
export function createOutputs(folder: OutputFolder, sealer: Sealer, onError: (error: unknown) => void): Outputs {
  const recordings = new Map<string, Recording>();
  /** Of the files of ended calls that were read last. */
  const indexes = new Map<string, ChunkIndex>();

  const noteIndex = (callId: string, index: ChunkIndex): void => {
    indexes.delete(callId);
    indexes.set(callId, index);
    for (const oldest of indexes.keys()) {
      if (indexes.size <= MAX_INDEXES) break;
      indexes.delete(oldest);
    }
  };
  const readEnded = async (callId: string, range: ReadRange, known: KnownCall): Promise<OutputPart> => {
    const { output } = known;
    if (known.open || (output !== undefined && output.chunks.length > 0)) {
      return partOf(callId, chunksInMemory(output?.chunks ?? []), range, summaryFrom(known));
    }
    const summary = summaryFrom(known);
    // Closed after each part: a file that is deleted meanwhile would take its room for as long as it is open.
    const file = await openChunkFile(folder.pathOf(callId), callId, sealer, indexes.get(callId));
    if (file === undefined) {
      indexes.delete(callId);
      if (summary.chunks > 0) summary.kept = OutputKept.RELEASED;
      return { chunks: [], next: Math.max(range.from, summary.chunks), summary };
    }
    try {
      noteIndex(callId, file.index);
      // Where the agent was killed, no end says how much there is.
      summary.chunks = Math.max(summary.chunks, file.count);
      if (output === undefined) summary.bytes = BigInt(file.index.end);
      return await partOf(callId, file, range, summary);
    } finally {
      await file.close();
    }
  };

  return {
    record(callId, listener) {
      const room = folder.allot(callId);
      let file: ChunkFile | undefined;
      const recording = createRecording({
        ...listener,
        reserve: room.reserve,
        async createFile() {
          file = await createChunkFile(folder.pathOf(callId), callId, sealer);
          return file;
        },
        onError,
      });
      recordings.set(callId, recording);
      return {
        push: recording.push,
        async end() {
          await recording.end();
          const summary = summaryOfRecording(recording, false);
          const chunks = (recording.few ?? []).map((chunk) => messageOf(callId, chunk));
          return create(LedgerOutputSchema, { summary, chunks });
        },
        close() {
          recordings.delete(callId);
          if (recording.few === undefined) room.keep();
          else room.remove();
          file?.close().catch(onError);
        },
      };
    },
    async read(callId, range, known) {
      const recording = recordings.get(callId);
      if (recording !== undefined) {
        recording.cut();
        const part = await partOf(callId, recording, range, summaryOfRecording(recording, true));
        recording.noteRead(part.next);
        return part;
      }
      if (known !== undefined) return readEnded(callId, range, known);
      const summary = create(OutputSummarySchema, { kept: OutputKept.UNKNOWN_CALL });
      return { chunks: [], next: range.from, summary };
    },
    summaryOf(callId, known) {
      const recording = recordings.get(callId);
      return recording === undefined ? summaryFrom(known) : summaryOfRecording(recording, true);
    },
  };
}

/** Reads a part. What is not kept is passed over: the next number is above it. */
async function partOf(
  callId: string,
  source: ChunkSource,
  range: ReadRange,
  summary: OutputSummary,
): Promise<OutputPart> {
  const { chunks, next } = await readRange(source, range);
  const isEnd = next >= source.count && range.from >= source.count;
  return {
    chunks: chunks.map((chunk) => messageOf(callId, chunk)),
    next: isEnd ? Math.max(next, summary.chunks) : next,
    summary,
  };
}

function messageOf(callId: string, { sequence, stream, data }: Chunk): ExecutionOutput {
  return create(ExecutionOutputSchema, { callId, sequence, stream, data });
}

function summaryOfRecording(recording: Recording, isOpen: boolean): OutputSummary {
  const summary = create(OutputSummarySchema, {
    kept: OutputKept.YES,
    open: isOpen,
    chunks: recording.printed,
    bytes: BigInt(recording.keptBytes),
  });
  if (recording.truncatedAtByte !== undefined) summary.truncatedAtByte = BigInt(recording.truncatedAtByte);
  return summary;
}

/** Nothing was printed where the ledger keeps nothing. */
function summaryFrom({ open, output }: KnownCall): OutputSummary {
  const summary =
    output?.summary === undefined
      ? create(OutputSummarySchema, { kept: OutputKept.YES })
      : clone(OutputSummarySchema, output.summary);
  summary.open = open;
  return summary;
}
