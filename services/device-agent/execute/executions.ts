import { fromBinary } from "@bufbuild/protobuf";
import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type ExecuteCommand,
  type ExecutionFinished,
  LedgerOutputSchema,
  type ReconcileCommand,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";
import type { BatchVerifier } from "../../../lib/sign/batch-verifier.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import { checkGrant, type GoodGrant } from "../grants/check-grant.ts";
import type { NewExecution } from "../ledger/ledger.ts";
import type { ReadRange } from "../output/chunk-source.ts";
import type { OutputPart, Outputs } from "../output/outputs.ts";
import { type Refusal, refusal } from "../refusal.ts";
import { notStartedEnd, refusedEnd } from "./call-end.ts";
import { isSameCall, reused } from "./endings.ts";
import { createJobs } from "./jobs.ts";
import { createOpenCalls, internalFault, type OpenCall } from "./open-calls.ts";
import { type PerformOptions, perform } from "./perform.ts";
import { type OfferedTools, type PreparedCall, prepareCall } from "./prepare.ts";
import { createStop } from "./stop.ts";
import type { Watcher } from "./watcher.ts";

export interface ExecutionOptions extends PerformOptions {
  /** Verifies grants by the pinned keys. */
  verifier: BatchVerifier;
  deviceId: string;
  /** What the active manifest offers. */
  offered(): OfferedTools;
  outputs: Outputs;
}

/** The calls of one device. A call belongs to no caller: the one that asked may leave, and any may ask for it again. */
export interface Executions {
  /** Runs a call, or reports how it ended where its id is known. The watcher receives the end in any case. */
  start(start: ExecuteCommand, watcher: Watcher): void;
  /** Stops a call. Nothing happens where it is not running or waiting. */
  cancel(callId: string): void;
  /** Reports how a call ended, when it has. One that was never started never will be. */
  reconcile(command: ReconcileCommand, watcher: Watcher): void;
  /** Forgets a watcher that has left. Its calls go on. */
  leave(watcher: Watcher): void;
  /** What is known of a call; undefined for nothing. */
  find(callId: string): Promise<{ running: true } | { running: false; finished: ExecutionFinished } | undefined>;
  /** A part of what a call has printed, while it runs or after its end. */
  readOutput(callId: string, range: ReadRange): Promise<OutputPart>;
  /** How many calls run or wait. */
  readonly size: number;
  /** Takes on nothing more, stops all calls and resolves when their ends are on disk. */
  close(): Promise<void>;
}

/** Takes calls on. While a call is open, all who ask for its id meet there, so that two answers cannot cross. */
export function createExecutions(options: ExecutionOptions): Executions {
  const { ledger, endings, outputs, onUnexpected } = options;
  const open = createOpenCalls(outputs, onUnexpected);
  const ports = { open, ledger, outputs };
  let closing = false;

  /** Answers without taking the call on. */
  const reply = (callId: string, watcher: Watcher, answer: Promise<ExecutionFinished>): void => {
    answer.then(
      (finished) => watcher.finished(finished),
      (error: unknown) => {
        onUnexpected(callId, error);
        watcher.lost(callId, internalFault(callId, error));
      },
    );
  };
  const join = (call: OpenCall, start: ExecuteCommand, watcher: Watcher): void => {
    const asked = askedFor(start);
    if (isSameCall({ ...call.execution, state: "started" }, asked)) call.watchers.add(watcher);
    else reply(start.callId, watcher, endings.refuse(asked, reused(start.callId)));
  };
  /** A grant that does not hold takes no call on, but the end of a known call is still reported. */
  const answerRefused = async (start: ExecuteCommand, why: Refusal): Promise<ExecutionFinished> => {
    const asked = askedFor(start);
    const known = await ledger.find(start.callId);
    if (known?.finished !== undefined && isSameCall(known, asked)) return endings.endOf(known);
    return endings.refuse(asked, why);
  };
  const prepare = (good: GoodGrant, offered: OfferedTools): PreparedCall | Refusal => {
    try {
      return prepareCall(good, offered, options);
    } catch (error: unknown) {
      onUnexpected(good.grant.callId, error);
      return refusal(ErrorReason.INTERNAL, "internal error on the device", { request_id: good.grant.callId });
    }
  };
  const takeOn = (good: GoodGrant, offered: OfferedTools, watcher: Watcher): void => {
    const execution = executionOf(good);
    const prepared = prepare(good, offered);
    if (prepared.kind === "refused") {
      open.track(execution, undefined, watcher, () => endings.record(execution, refusedEnd(prepared)));
      return;
    }
    const stop = createStop(prepared.timeoutMs);
    open.track(execution, stop, watcher, (live) =>
      perform({ execution, good, prepared, stop, live, jobs: () => createJobs(ports, good.grant) }, options),
    );
  };
  const reconcileUnknown = async (execution: NewExecution): Promise<ExecutionFinished> => {
    const known = await ledger.find(execution.callId);
    return known === undefined ? endings.record(execution, notStartedEnd()) : endings.endOf(known);
  };

  return {
    start(start, watcher) {
      if (closing) return watcher.lost(start.callId, notReady());
      const call = open.find(start.callId);
      if (call !== undefined) return join(call, start, watcher);
      const offered = options.offered();
      const good = checkGrant(start, { ...grantFacts(options, offered), nowMs: options.now() });
      if (good.kind === "refused") reply(start.callId, watcher, answerRefused(start, good));
      else takeOn(good, offered, watcher);
    },
    cancel: (callId) => open.find(callId)?.stop?.stop("canceled"),
    reconcile({ callId, tool, argsDigest }, watcher) {
      if (closing) return watcher.lost(callId, notReady());
      const call = open.find(callId);
      if (call !== undefined) return void call.watchers.add(watcher);
      const execution = { callId, grantId: undefined, tool, argsDigest };
      open.track(execution, undefined, watcher, () => reconcileUnknown(execution));
    },
    leave: (watcher) => open.leave(watcher),
    async find(callId) {
      const known = await ledger.find(callId);
      // Looked at after the ledger, because a call that is not open any more has its end there.
      if (open.find(callId) !== undefined) return { running: true };
      return known && { running: false, finished: await endings.endOf(known) };
    },
    async readOutput(callId, range) {
      const known = await ledger.find(callId);
      const isOpen = open.find(callId) !== undefined;
      if (known === undefined && !isOpen) return outputs.read(callId, range, undefined);
      const output = known?.output && fromBinary(LedgerOutputSchema, known.output);
      return outputs.read(callId, range, { open: isOpen && known?.finished === undefined, output });
    },
    get size() {
      return open.size;
    },
    async close() {
      closing = true;
      await open.shutDown();
    },
  };
}

function grantFacts({ verifier, deviceId }: ExecutionOptions, { known, manifestDigest }: OfferedTools) {
  return { verifier, deviceId, tools: known, manifestDigest };
}

function executionOf({ grant, argsDigest }: GoodGrant): NewExecution {
  const { callId, grantId, tool, principalId } = grant;
  return { callId, grantId, tool, argsDigest, principalId };
}

/** What a start asks for, whatever its grant is worth. */
function askedFor(start: ExecuteCommand): NewExecution {
  return { callId: start.callId, grantId: undefined, tool: start.tool, argsDigest: sha256Hex(start.arguments) };
}

/** The fault for everything that is asked of an agent that is closing. */
export function notReady(): ConnectError {
  return fault(ErrorReason.NOT_READY, {}, { message: "the device agent is closing" });
}
