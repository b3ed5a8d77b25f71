import type { JsonObject } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { ToolContext } from "../tools/tool.ts";
import { type CallEnd, faultEnd, internalEnd, stoppedEnd, succeeded } from "./call-end.ts";
import type { PreparedCall } from "./prepare.ts";
import type { Stop } from "./stop.ts";

/** The most bytes of an output, as JSON. */
export const MAX_OUTPUT_BYTES = 2 * 1024 * 1024;

export interface RunOptions {
  callId: string;
  stop: Stop;
  executor: ToolContext["executor"];
  roots: ToolContext["roots"];
  emit: ToolContext["emit"];
  /** Receives unexpected errors. */
  onUnexpected(error: unknown): void;
}

/** Runs a tool to its end. Never rejects: whatever it throws is an end of the call. */
export async function runTool(call: PreparedCall, options: RunOptions): Promise<CallEnd> {
  const { stop, executor, roots, emit } = options;
  try {
    const context = { signal: stop.signal, timeoutMs: call.timeoutMs, executor, roots, emit };
    const output = await Promise.race([call.run(context), stop.overdue]);
    return output === undefined ? overdueEnd(stop, call.timeoutMs) : succeeded(encodeOutput(output));
  } catch (error: unknown) {
    const end = faultEnd(error, stop.kind);
    if (end !== undefined) return end;
    if (stop.kind !== undefined) return stoppedEnd(stop.kind, call.timeoutMs);
    options.onUnexpected(error);
    return internalEnd(options.callId);
  }
}

/** The output as JSON text. Fault: TOOL_FAILED{limit,bytes} where it is too large. */
function encodeOutput(output: JsonObject): Uint8Array {
  const bytes = Buffer.from(JSON.stringify(output));
  if (bytes.length <= MAX_OUTPUT_BYTES) return bytes;
  const metadata = { limit: String(MAX_OUTPUT_BYTES), bytes: String(bytes.length) };
  const message = `the tool ran, but its output of ${bytes.length} bytes is larger than ${MAX_OUTPUT_BYTES}`;
  throw fault(ErrorReason.TOOL_FAILED, metadata, { message });
}

function overdueEnd(stop: Stop, timeoutMs: number): CallEnd {
  const end = stoppedEnd(stop.kind ?? "timed_out", timeoutMs);
  return { ...end, message: `${end.message}; it did not heed that and may still be running` };
}
