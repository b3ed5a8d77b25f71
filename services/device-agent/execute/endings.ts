import { fromBinary, toBinary } from "@bufbuild/protobuf";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import {
  type ExecutionFinished,
  ExecutionFinishedSchema,
  LedgerOutputSchema,
} from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { replayed } from "../grants/check-grant.ts";
import type { Execution, ExecutionEnd, Ledger, NewExecution, TakeResult } from "../ledger/ledger.ts";
import { type Refusal, refusal } from "../refusal.ts";
import { type CallEnd, interruptedEnd, refusedEnd } from "./call-end.ts";
import { type ReceiptIssuer, sealEnd } from "./receipts.ts";

/** Signs the ends of calls, writes them down, and finds them again. */
export interface Endings {
  /** The answer to a call that is refused. Written nowhere: a forged grant must not use up the id of a real call. */
  refuse(call: NewExecution, why: Refusal): Promise<ExecutionFinished>;
  /** Ends a call that was not begun, and uses up its grant. Where its id is known already, its own end is the answer. */
  record(call: NewExecution, end: CallEnd): Promise<ExecutionFinished>;
  /** Ends a call that was begun, and that might run for so many milliseconds; undefined where that is not known any more. */
  finish(call: NewExecution, startMs: number, end: CallEnd, timeoutMs?: number): Promise<ExecutionFinished>;
  /** The answer where a call could not be taken on, because its id or its grant is known. */
  answer(taken: Exclude<TakeResult, { kind: "taken" }>, call: NewExecution): Promise<ExecutionFinished>;
  /** The end of a known call that is not running; one that has none is settled as interrupted. */
  endOf(execution: Execution): Promise<ExecutionFinished>;
}

export interface EndingOptions {
  ledger: Ledger;
  issuer: ReceiptIssuer;
  /** Milliseconds since 1970. */
  now(): number;
}

/** Ends calls in this ledger with this device's receipts. */
export function createEndings({ ledger, issuer, now }: EndingOptions): Endings {
  const seal = async (call: NewExecution, startMs: number | undefined, end: CallEnd, timeoutMs = 0) => {
    const endMs = now();
    const { callId, grantId = "", tool, argsDigest } = call;
    const finished = await sealEnd(issuer, { callId, grantId, tool, argsDigest, startMs, endMs, timeoutMs }, end);
    return { finished, row: () => rowOf(finished, end, endMs) };
  };
  const endings: Endings = {
    refuse: async (call, why) => (await seal(call, undefined, refusedEnd(why))).finished,
    async record(call, end) {
      const { finished, row } = await seal(call, undefined, end);
      const taken = await ledger.record(call, row());
      return taken.kind === "taken" ? finished : endings.answer(taken, call);
    },
    async finish(call, startMs, end, timeoutMs) {
      const { finished, row } = await seal(call, startMs, end, timeoutMs);
      if (await ledger.finish(row())) return finished;
      const known = await ledger.find(call.callId);
      if (known?.finished === undefined) throw new Error(`the ledger lost the call ${call.callId}`);
      return decode(known.finished);
    },
    async answer(taken, call) {
      if (taken.kind === "replayed")
        return endings.refuse(call, replayed(call.grantId ?? "", "the grant was used already"));
      if (isSameCall(taken.execution, call)) return endings.endOf(taken.execution);
      return endings.refuse(call, reused(call.callId));
    },
    async endOf(execution) {
      if (execution.finished !== undefined) return decode(execution.finished);
      return endings.finish(execution, execution.startMs ?? now(), interruptedEnd());
    },
  };
  return endings;
}

/** True where a start asks for what the ledger or the running call holds. A settled call is settled for any start. */
export function isSameCall(known: Pick<Execution, "tool" | "argsDigest" | "state">, asked: NewExecution): boolean {
  return known.state === "not_started" || (known.tool === asked.tool && known.argsDigest === asked.argsDigest);
}

/** The refusal for a call id that belongs to a call with another tool or other arguments. */
export function reused(callId: string): Refusal {
  return refusal(ErrorReason.CALL_ID_REUSED, "the call id belongs to another call", { call_id: callId });
}

function rowOf(finished: ExecutionFinished, end: CallEnd, endMs: number): ExecutionEnd {
  const { outcome, state, error, printed } = end;
  const reason = error?.reason ?? ErrorReason.UNSPECIFIED;
  return {
    callId: finished.callId,
    state,
    outcome,
    reason,
    endMs,
    finished: toBinary(ExecutionFinishedSchema, finished),
    output: printed && toBinary(LedgerOutputSchema, printed),
  };
}

function decode(bytes: Uint8Array): ExecutionFinished {
  return fromBinary(ExecutionFinishedSchema, bytes);
}
