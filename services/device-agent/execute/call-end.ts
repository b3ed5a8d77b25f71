import { create } from "@bufbuild/protobuf";
import { durationMs } from "@bufbuild/protobuf/wkt";
import { ConnectError } from "@connectrpc/connect";
import { type ErrorDetail, ErrorDetailSchema, ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { LedgerOutput } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import type { SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { ExecutionOutcome } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import type { Grant } from "../../../gen/ts/reeve/policy/v1/grant_pb.ts";
import { faultDetail } from "../../../lib/fault/fault.ts";
import type { ExecutionState } from "../ledger/schema.ts";
import type { Refusal } from "../refusal.ts";
import type { StopKind } from "./stop.ts";

/** How a call ended, before it is signed and written. */
export interface CallEnd {
  outcome: ExecutionOutcome;
  state: Exclude<ExecutionState, "started">;
  /** ProtoJSON bytes; empty where it did not succeed. */
  output: Uint8Array;
  /** Undefined where it succeeded. */
  error: ErrorDetail | undefined;
  /** Empty where it succeeded. */
  message: string;
  /** What its programs printed, for the ledger. Absent where that is nothing, or not known. */
  printed?: LedgerOutput | undefined;
  /** The lowest level at which it ran programs. Absent where it ran none, or that is not known. */
  sandbox?: SandboxLevel;
}

const NOTHING = new Uint8Array();

/** The tool ran and returned this. */
export function succeeded(output: Uint8Array): CallEnd {
  return { outcome: ExecutionOutcome.SUCCEEDED, state: "finished", output, error: undefined, message: "" };
}

/** The device refused to run it: nothing ran. */
export function refusedEnd(refusal: Refusal): CallEnd {
  const { reason, metadata, violations, message } = refusal;
  return ended(
    ExecutionOutcome.REFUSED,
    "refused",
    message,
    create(ErrorDetailSchema, { reason, metadata, violations }),
  );
}

/** The device died between start and finish. */
export function interruptedEnd(): CallEnd {
  const message = "the device agent died while the tool may have been running; what it did is not known";
  return ended(ExecutionOutcome.INTERRUPTED, "finished", message, detail(ErrorReason.INTERRUPTED));
}

/** It was never started, and never will be. */
export function notStartedEnd(message = "the call was never started on the device, and never will be"): CallEnd {
  return ended(ExecutionOutcome.NOT_STARTED, "not_started", message, detail(ErrorReason.NOT_STARTED));
}

/** It was stopped before it was started: nothing ran. */
export function stoppedBeforeStart(kind: StopKind): CallEnd {
  if (kind === "timed_out") return notStartedEnd("the call's time was up before it could be started");
  const error = detail(ErrorReason.CANCELED, { by: actorOf(kind) });
  return ended(ExecutionOutcome.CANCELED, "not_started", "the call was canceled before it was started", error);
}

/** It was stopped while it ran, and the tool said no more about it. */
export function stoppedEnd(kind: StopKind, timeoutMs: number): CallEnd {
  if (kind === "timed_out") {
    const error = detail(ErrorReason.TIMED_OUT, { timeout_ms: String(timeoutMs) });
    return ended(
      ExecutionOutcome.TIMED_OUT,
      "finished",
      `the call took longer than ${timeoutMs} ms and was stopped`,
      error,
    );
  }
  return ended(
    ExecutionOutcome.CANCELED,
    "finished",
    "the call was canceled",
    detail(ErrorReason.CANCELED, { by: actorOf(kind) }),
  );
}

/** The end with the limit that it ran into, where that is the one that policy's rules set for what no person approved. */
export function withLimit(end: CallEnd, { obligations }: Pick<Grant, "obligations">): CallEnd {
  if (end.outcome !== ExecutionOutcome.TIMED_OUT || !obligations?.maxRun) return end;
  const maxRunMs = durationMs(obligations.maxRun);
  const metadata = { ...end.error?.metadata, max_run_ms: String(maxRunMs) };
  const message = `${end.message}; without a person's approval policy lets it run for ${maxRunMs} ms (max_run) at most`;
  return { ...end, message, error: detail(ErrorReason.TIMED_OUT, metadata) };
}

/** The tool threw a fault; undefined for anything else. `kind` is why the call was stopped, if it was. */
export function faultEnd(error: unknown, kind: StopKind | undefined): CallEnd | undefined {
  const found = faultDetail(error);
  if (found === undefined || !(error instanceof ConnectError)) return undefined;
  // A tool sees only that it was canceled, not by whom.
  if (found.reason === ErrorReason.CANCELED && kind !== undefined) found.metadata.by = actorOf(kind);
  return ended(OUTCOMES.get(found.reason) ?? ExecutionOutcome.FAILED, "finished", error.rawMessage, found);
}

/** Something unexpected; the cause is in the log under the call's id. */
export function internalEnd(callId: string): CallEnd {
  const error = detail(ErrorReason.INTERNAL, { request_id: callId });
  return ended(ExecutionOutcome.FAILED, "finished", `internal error on the device; call id ${callId}`, error);
}

const OUTCOMES: ReadonlyMap<ErrorReason, ExecutionOutcome> = new Map<ErrorReason, ExecutionOutcome>([
  [ErrorReason.TIMED_OUT, ExecutionOutcome.TIMED_OUT],
  [ErrorReason.CANCELED, ExecutionOutcome.CANCELED],
  [ErrorReason.INTERRUPTED, ExecutionOutcome.INTERRUPTED],
]);

function actorOf(kind: StopKind): string {
  return kind === "shutdown" ? "shutdown" : "caller";
}

function detail(reason: ErrorReason, metadata: Record<string, string> = {}): ErrorDetail {
  return create(ErrorDetailSchema, { reason, metadata });
}

function ended(outcome: ExecutionOutcome, state: CallEnd["state"], message: string, error: ErrorDetail): CallEnd {
  return { outcome, state, output: NOTHING, error, message };
}
