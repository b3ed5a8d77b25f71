import { create } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { type OutputGap, OutputGapSchema } from "../../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type ExecutionOutput,
  OutputKept,
  type OutputRead,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault, faultDetail } from "../../../lib/fault/fault.ts";
import { createOutputCleaner, type OutputCleaner } from "../../../lib/sanitize/output-cleaner.ts";
import { CONTEXT_BYTES } from "../../../lib/sanitize/sanitize.ts";
import type { OutputSource } from "./output-source.ts";

/** How one reader gets the output of a call. */
export interface FollowerOptions {
  callId: string;
  source: OutputSource;
  /** The number of the first chunk wanted; undefined for what comes from now on. */
  from: number | undefined;
  /** Sends what was sanitized. The promise resolves when the reader has taken it, or reads no more. */
  send(output: ExecutionOutput): Promise<void> | undefined;
  /** Something that was wanted cannot be sent. */
  onGap(gap: OutputGap): void;
  /** Whether the reader is gone. */
  isOver(): boolean;
}

/** Puts together what a device keeps of a call's output and what comes while it runs, without a gap, for one reader. */
export interface OutputFollower {
  /** Reads what was printed so far. Resolves when the reader has it all, or the device does not answer. */
  catchUp(): Promise<void>;
  /** Takes the next chunk that comes. The promise resolves when the reader has taken it, and what it missed before. */
  take(output: ExecutionOutput): Promise<void> | undefined;
  /** No more comes: sends what was held back. With `all`, also what never came. */
  finish(all: boolean): Promise<void>;
}

/** How much is read from the device at a time, in bytes. */
const PART_BYTES = 256 * 1024;

export function createOutputFollower(options: FollowerOptions): OutputFollower {
  const { callId, source, from = 0, send, onGap, isOver } = options;
  let next = options.from;
  let cleaner: OutputCleaner | undefined;
  /** Resolves when what came so far is sent; undefined while nothing has to wait. */
  let busy: Promise<void> | undefined;

  const deliver = (chunk: ExecutionOutput): Promise<void> | undefined => {
    next = chunk.sequence + 1;
    cleaner ??= createOutputCleaner();
    const clean = cleaner.clean(chunk);
    return clean.data.length === 0 ? undefined : send(clean);
  };
  const skipTo = (until: number | undefined, why: unknown): void => {
    if (next === undefined || (until !== undefined && until <= next)) return;
    onGap(gapOf(next, until, why));
    if (until !== undefined) next = until;
  };
  /** Sends a part that was read. True where there may be more before `until`. */
  const sendPart = async (read: OutputRead, start: number, until: number): Promise<boolean> => {
    cleaner ??= createOutputCleaner(read.chunks.filter(({ sequence }) => sequence < start));
    const sent: Promise<void>[] = [];
    for (const chunk of read.chunks) {
      if (chunk.sequence < start || chunk.sequence < (next ?? 0) || chunk.sequence >= until) continue;
      skipTo(chunk.sequence, notKept(callId, read));
      const taken = deliver(chunk);
      if (taken !== undefined) sent.push(taken);
    }
    skipTo(Math.min(read.nextSequence, until), notKept(callId, read));
    await Promise.all(sent);
    return (next ?? 0) > start && (next ?? 0) < Math.min(until, read.summary?.chunks ?? 0);
  };
  const readUntil = async (until: number): Promise<void> => {
    for (let more = true; more && !isOver(); ) {
      const start = next ?? 0;
      const contextBytes = cleaner === undefined && start > 0 ? CONTEXT_BYTES : 0;
      const read = await source.read({ fromSequence: start, maxBytes: PART_BYTES, contextBytes });
      more = await sendPart(read, start, until);
    }
  };
  const arrive = async (chunk: ExecutionOutput): Promise<void> => {
    if (next !== undefined && chunk.sequence > next) {
      await readUntil(chunk.sequence).catch((error: unknown) => skipTo(chunk.sequence, error));
      skipTo(chunk.sequence, notKept(callId, undefined));
    }
    if (chunk.sequence >= (next ?? 0)) await deliver(chunk);
  };
  /** Runs after what has to be sent before. */
  const inTurn = (run: () => Promise<void>): Promise<void> => {
    const mine = (busy ?? Promise.resolve()).then(run).finally(() => {
      if (busy === mine) busy = undefined;
    });
    busy = mine;
    return mine;
  };

  return {
    // Where it fails now, the next chunk shows what is missing, or the end does.
    catchUp: () => inTurn(() => readUntil(Number.POSITIVE_INFINITY).catch(() => undefined)),
    take(chunk) {
      if (busy !== undefined || (next !== undefined && chunk.sequence > next)) return inTurn(() => arrive(chunk));
      return next !== undefined && chunk.sequence < next ? undefined : deliver(chunk);
    },
    finish: (all) =>
      inTurn(async () => {
        next ??= 0;
        if (all) await readUntil(Number.POSITIVE_INFINITY).catch((error: unknown) => skipTo(undefined, error));
        for (const rest of cleaner?.rest() ?? []) if (rest.sequence >= from) await send(rest);
      }),
  };
}

function gapOf(fromSequence: number, until: number | undefined, why: unknown): OutputGap {
  const error = faultDetail(why) ?? faultDetail(fault(ErrorReason.INTERNAL));
  const message = faultDetail(why) === undefined ? "internal error" : ConnectError.from(why).rawMessage;
  return create(OutputGapSchema, {
    fromSequence,
    ...(until === undefined ? {} : { untilSequence: until }),
    ...(error === undefined ? {} : { error }),
    message,
  });
}

/** Why a device does not have chunks that were printed. */
function notKept(callId: string, read: OutputRead | undefined): Error {
  const { kept, truncatedAtByte } = read?.summary ?? {};
  const why =
    kept === OutputKept.RELEASED
      ? "the device has let it go, because of its age or to make room"
      : truncatedAtByte === undefined
        ? "the device does not have it"
        : `the device kept no more of it than the first ${truncatedAtByte} bytes`;
  const message = `a part of the call's output is missing: ${why}`;
  return fault(ErrorReason.NOT_FOUND, { resource: `calls/${callId}/output` }, { message });
}
