import type { JsonObject } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { ExecutionFinished } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { SecretStore } from "../../../lib/secrets/store.ts";
import { levelOf } from "../executor/sandbox/levels.ts";
import { expired, type GoodGrant } from "../grants/check-grant.ts";
import type { Ledger, NewExecution, TakeResult } from "../ledger/ledger.ts";
import { type Refusal, refusal } from "../refusal.ts";
import { type CallSecrets, secretsOfCall } from "../secrets/call-secrets.ts";
import { throwIfAborted } from "../tools/outcome.ts";
import type { ToolContext } from "../tools/tool.ts";
import {
  type CallEnd,
  faultEnd,
  internalEnd,
  stoppedBeforeStart,
  stoppedEnd,
  succeeded,
  withLimit,
} from "./call-end.ts";
import type { Endings } from "./endings.ts";
import { withFloor } from "./floor.ts";
import type { LiveOutput } from "./live-output.ts";
import { ownerExpired, type PreparedCall } from "./prepare.ts";
import { requireUnchanged } from "./previews.ts";
import type { Slots } from "./slots.ts";
import type { Stop } from "./stop.ts";

/** What all calls of a device share. */
export interface PerformOptions {
  ledger: Ledger;
  endings: Endings;
  slots: Slots;
  executor: ToolContext["executor"];
  roots: ToolContext["roots"];
  undo: ToolContext["undo"];
  hosts: ToolContext["hosts"];
  secrets: Pick<SecretStore, "read">;
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
  live: LiveOutput;
  jobs: ToolContext["jobs"];
}

/**
 * Sees one call to its end: waits for a place, writes it down, runs it, writes its end down. Nothing runs before it is
 * on disk that it will. Rejects only where the ledger fails.
 */
export async function perform(call: AdmittedCall, options: PerformOptions): Promise<ExecutionFinished> {
  const { slots } = options;
  const { stop } = call;
  if (call.prepared.immediate) return performInPlace(call, options);
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
  const ended = ownerExpired(call.prepared.owner, startMs);
  if (ended !== undefined) return endings.refuse(execution, ended);
  const taken = await begin(call, startMs, options);
  if (taken.kind === "refused") return endings.refuse(execution, taken);
  if (taken.kind !== "taken") return endings.answer(taken, execution);
  const { executor, level } = withFloor(options.executor, call.prepared.floor);
  const end = withLimit(await run(call, { ...options, executor }), good.grant);
  const { elsewhere, timeoutMs } = call.prepared;
  const sandbox = elsewhere === undefined ? level() : levelOf(elsewhere);
  const printed = await call.live.record();
  return endings.finish(execution, startMs, { ...end, printed, sandbox }, timeoutMs);
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
  const { executor, roots, undo, hosts } = options;
  const { callId } = call.execution;
  const onUnexpected = (error: unknown) => options.onUnexpected(callId, error);
  const shown = (previewId: string) => shownPreview(previewId, options);
  const secrets = secretsOfCall(options.secrets);
  const { stop, live, jobs } = call;
  return { shown, callId, stop, executor, roots, undo, hosts, secrets, emit: live.push, jobs, onUnexpected };
}

/** The most bytes of an output, as JSON. */
const MAX_OUTPUT_BYTES = 2 * 1024 * 1024;

interface RunOptions {
  callId: string;
  stop: Stop;
  executor: ToolContext["executor"];
  roots: ToolContext["roots"];
  undo: ToolContext["undo"];
  hosts: ToolContext["hosts"];
  secrets: CallSecrets;
  emit: ToolContext["emit"];
  jobs: ToolContext["jobs"];
  /** The output of a preview that this device made. */
  shown(previewId: string): Promise<Uint8Array | undefined>;
  /** Receives unexpected errors. */
  onUnexpected(error: unknown): void;
}

/** Runs a tool to its end. Never rejects: whatever it throws is an end of the call. */
async function runTool(call: PreparedCall, options: RunOptions): Promise<CallEnd> {
  const { stop, secrets } = options;
  try {
    const context = contextOf(call, options);
    const output = await Promise.race([runAsShown(call, context, options), stop.overdue]);
    return output === undefined
      ? overdueEnd(stop, call.timeoutMs)
      : succeeded(encodeOutput(secrets.maskOutput(output)));
  } catch (error: unknown) {
    const end = faultEnd(error, stop.kind);
    if (end !== undefined) return { ...end, message: secrets.mask(end.message) };
    if (stop.kind !== undefined) return stoppedEnd(stop.kind, call.timeoutMs);
    options.onUnexpected(error);
    return internalEnd(options.callId);
  }
}

/** Runs the tool, where its approver was shown a preview only while that holds still. */
async function runAsShown(call: PreparedCall, context: ToolContext, { shown }: RunOptions): Promise<JsonObject> {
  if (call.previewed === undefined) return call.run(context);
  await requireUnchanged(call.previewed, context, shown);
  // It may have been stopped meanwhile, and not every tool looks before it acts.
  throwIfAborted(context);
  return call.run(context);
}

async function shownPreview(previewId: string, { ledger, endings }: PerformOptions): Promise<Uint8Array | undefined> {
  const known = await ledger.find(previewId);
  return known?.finished && (await endings.endOf(known)).output;
}

function contextOf({ timeoutMs, plan }: PreparedCall, options: RunOptions): ToolContext {
  const { callId, stop, executor, roots, undo, hosts, secrets, emit, jobs } = options;
  return {
    callId,
    signal: stop.signal,
    timeoutMs,
    executor,
    roots,
    undo,
    hosts,
    secrets,
    plan,
    jobs,
    // A chunk may end in the middle of a secret: what a call that has used one prints is in its end, masked.
    emit: (stream, chunk) => (secrets.isUsed ? undefined : emit(stream, chunk)),
  };
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
