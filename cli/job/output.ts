import { toJson } from "@bufbuild/protobuf";
import { GetCallOutputResponseSchema } from "../../gen/ts/reeve/call/v1/call_service_pb.ts";
import { OutputKept, OutputStream, type OutputSummary } from "../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { createLiveOutput } from "../call/live-output.ts";
import type { CommandContext } from "../command-context.ts";
import { jsonLine } from "../print/json.ts";
import type { Session } from "../session.ts";

/** Which part of a job's output to print. */
export interface OutputFlags {
  /** The number of the first chunk. */
  from: number;
  /** About how many bytes; undefined for all that there is. */
  maxBytes?: number;
  json?: true;
}

/** How much is asked for at a time, in bytes. */
const PART_BYTES = 1024 * 1024;

/** Prints what a job has printed so far, each stream to the output of the same name, and says where to go on. */
export async function printOutput(
  { registry }: Session,
  callId: string,
  flags: OutputFlags,
  context: CommandContext,
): Promise<void> {
  const live = createLiveOutput(context);
  const decoders = { stdout: new TextDecoder(), stderr: new TextDecoder() };
  let left = flags.maxBytes ?? Number.POSITIVE_INFINITY;
  for (let next = flags.from; ; ) {
    const part = await registry.getCallOutput({ callId, fromSequence: next, maxBytes: Math.min(left, PART_BYTES) });
    if (flags.json) context.stdout.write(jsonLine(toJson(GetCallOutputResponseSchema, part)));
    for (const { stream, data } of part.chunks) {
      left -= data.length;
      const name = stream === OutputStream.STDERR ? "stderr" : "stdout";
      if (!flags.json) live.print(name, decoders[name].decode(data, { stream: true }));
    }
    const isLast = part.complete || part.nextSequence === next || left <= 0;
    next = part.nextSequence;
    if (!isLast) continue;
    if (!flags.json) note(callId, next, part.complete, part.summary, context);
    return;
  }
}

function note(
  callId: string,
  next: number,
  complete: boolean,
  summary: OutputSummary | undefined,
  { stderr }: CommandContext,
): void {
  const lost = lossText(summary);
  if (lost !== "") stderr.write(`reeve: ${lost}\n`);
  if (!complete) stderr.write(`reeve: there may be more: \`reeve job output ${callId} --from ${next}\` goes on\n`);
}

/** What of a job's output is lost, in words; empty for nothing. */
export function lossText(summary: OutputSummary | undefined): string {
  if (summary?.kept === OutputKept.RELEASED)
    return "the device has let the output go, because of its age or to make room";
  if (summary?.truncatedAtByte === undefined) return "";
  return `the device kept the first ${summary.truncatedAtByte} bytes; what was printed after them is lost`;
}
