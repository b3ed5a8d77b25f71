import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { ExecutionFinished } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { expired, type GoodGrant } from "../grants/check-grant.ts";
import type { Ledger, NewExecution, TakeResult } from "../ledger/ledger.ts";
import { type Refusal, refusal } from "../refusal.ts";
import type { ToolContext } from "../tools/tool.ts";
import { type CallEnd, stoppedBeforeStart, stoppedEnd, withLimit } from "./call-end.ts";
import type { Endings } from "./endings.ts";
import type { PreparedCall } from "./prepare.ts";
import { type RunOptions, runTool } from "./run-tool.ts";
import type { Slots } from "./slots.ts";
import type { Stop } from "./stop.ts";

/** What all calls of a device share. */
export interface PerformOptions {
  ledger: Ledger;
  endings: Endings;
  slots: Slots;
  executor: ToolContext["executor"];
  roots: ToolContext["roots"];
  /** Milliseconds since 1970. */
  now(): number;
  /** Receives unexpected errors: the caller gets no more than the call's id. */
  onUnexpected(callId: string, error: unknown): void;
}

/** A call with a good grant that nothing speaks against. */
export interface AdmittedCall {
  execution: NewExecution;
  good: GoodGrant;
  prepared: PreparedCall;
  stop: Stop;
  emit: ToolContext["emit"];
}

/**
 * Sees one call to its end: waits for a place, writes it down, runs it, writes its end down. Nothing runs before it is
 * on disk that it will. Rejects only where the ledger fails.
 */
export async function perform(call: AdmittedCall, options: PerformOptions): Promise<ExecutionFinished> {
  const { slots } = options;
  const { stop } = call;
  const kind = call.good.grant.isOperator ? "operator" : "other";
  if (!slots.tryTake(kind) && !(await slots.wait(stop.signal, kind))) {
    return options.endings.record(call.execution, stoppedBeforeStart(stop.kind ?? "canceled"));
  }
  try {
    return await performInPlace(call, options);
  } finally {
    slots.release(kind);
  }
}

async function performInPlace(call: AdmittedCall, options: PerformOptions): Promise<ExecutionFinished> {
  const { execution, good } = call;
  const { endings } = options;
  const startMs = options.now();
  // It was good when it came, but it may have waited for its place.
  if (startMs >= good.endsMs)
    return endings.refuse(execution, expired(good.grant, "the grant ended before the call's turn"));
  const taken = await begin(call, startMs, options);
  if (taken.kind === "refused") return endings.refuse(execution, taken);
  if (taken.kind !== "taken") return endings.answer(taken, execution);
  const end = withLimit(await run(call, options), good.grant);
  return endings.finish(execution, startMs, end, call.prepared.timeoutMs);
}

async function run(call: AdmittedCall, options: PerformOptions): Promise<CallEnd> {
  const { stop, prepared } = call;
  // It may have been stopped while the ledger was written, and not every tool looks before it acts.
  if (stop.kind !== undefined) return stoppedEnd(stop.kind, prepared.timeoutMs);
  return runTool(prepared, runOptions(call, options));
}

async function begin(call: AdmittedCall, startMs: number, options: PerformOptions): Promise<TakeResult | Refusal> {
  const { callId } = call.execution;
  try {
    return await options.ledger.begin(call.execution, startMs);
  } catch (error: unknown) {
    options.onUnexpected(callId, error);
    return refusal(ErrorReason.INTERNAL, "the ledger cannot be written, so nothing ran", { request_id: callId });
  }
}

function runOptions(call: AdmittedCall, options: PerformOptions): RunOptions {
  const { executor, roots } = options;
  const { callId } = call.execution;
  const onUnexpected = (error: unknown) => options.onUnexpected(callId, error);
  return { callId, stop: call.stop, executor, roots, emit: call.emit, onUnexpected };
}
