import { fromBinary, type JsonObject } from "@bufbuild/protobuf";
import { ConnectError } from "@connectrpc/connect";
import { type CallSpec, CallState } from "../../../gen/ts/reeve/call/v1/call_pb.ts";
import { type ErrorDetail, ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { Signed } from "../../../gen/ts/reeve/common/v1/signed_pb.ts";
import type { ExecutionFinished } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { SandboxLevel } from "../../../gen/ts/reeve/device/v1/device_pb.ts";
import { ExecutionOutcome, type Receipt, ReceiptSchema } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { fault, faultDetail } from "../../../lib/fault/fault.ts";
import { parseStrictJson } from "../../../lib/json/strict-json.ts";
import { sha256Hex } from "../../../lib/sign/canonical.ts";
import type { KnownDevice } from "../devices/known-device.ts";
import { deviceError } from "./device-error.ts";
import { endOf } from "./state.ts";

/** How a call ended, before its output is sanitized. */
export interface CallEnd {
  state: CallState;
  /** What the tool returned. Untrusted. */
  output: JsonObject | undefined;
  /** SHA-256 of the output as the device sent it, in hex. */
  outputDigest: string;
  outputBytes: number;
  error: ErrorDetail | undefined;
  message: string;
  receipt: Signed | undefined;
  /** The grant that the device used; empty where it used none. */
  grantId: string;
  sandbox: SandboxLevel;
}

/** What a device was asked to run. */
export interface ExecutedCall {
  id: string;
  spec: Pick<CallSpec, "deviceId" | "tool" | "argsDigest">;
}

/** The end of a call that did not come from a device. */
export function failedEnd(error: unknown): CallEnd {
  const detail = faultDetail(error) ?? faultDetail(fault(ErrorReason.INTERNAL));
  return {
    state: CallState.FAILED,
    output: undefined,
    outputDigest: "",
    outputBytes: 0,
    error: detail,
    message: faultDetail(error) === undefined ? "internal error" : ConnectError.from(error).rawMessage,
    receipt: undefined,
    grantId: "",
    sandbox: SandboxLevel.UNSPECIFIED,
  };
}

/** The end of a call that was canceled before it was started. */
export function canceledEnd(): CallEnd {
  const error = fault(ErrorReason.CANCELED, { by: "caller" }, { message: "canceled before it was started" });
  return { ...failedEnd(error), state: CallState.CANCELED };
}

/**
 * The end that a device reports. It counts only with a receipt that the device's pinned key signed for this very call
 * and this very output; without one what was done is not known, and the call is UNKNOWN.
 */
export function acceptFinished(
  finished: ExecutionFinished,
  call: ExecutedCall,
  device: KnownDevice | undefined,
): CallEnd {
  const checked = checkReceipt(finished, call, device);
  if (!checked.ok) return untrustedEnd(checked.problem);
  const { receipt } = checked;
  const output = outputOf(finished);
  if (finished.outcome === ExecutionOutcome.SUCCEEDED && output === undefined)
    return untrustedEnd("the output is no JSON object");
  const failure = finished.outcome === ExecutionOutcome.SUCCEEDED ? undefined : deviceError(finished);
  return {
    state: endOf(finished.outcome),
    output,
    outputDigest: receipt.outputDigest,
    outputBytes: finished.output.length,
    error: failure?.error,
    message: failure?.message ?? "",
    receipt: finished.receipt,
    grantId: receipt.grantId,
    sandbox: receipt.sandbox,
  };
}

type ReceiptCheck = { ok: true; receipt: Receipt } | { ok: false; problem: string };

function checkReceipt(finished: ExecutionFinished, call: ExecutedCall, device: KnownDevice | undefined): ReceiptCheck {
  if (device === undefined) return { ok: false, problem: "the device is not known" };
  const verified = device.receipts.verify(finished.receipt);
  if (!verified.ok) return { ok: false, problem: `the receipt's signature: ${verified.kind}` };
  const receipt = decode(verified.statement);
  if (receipt === undefined) return { ok: false, problem: "no receipt in it" };
  const outputDigest = finished.output.length === 0 ? "" : sha256Hex(finished.output);
  const holds =
    receipt.callId === call.id &&
    receipt.deviceId === call.spec.deviceId &&
    receipt.tool === call.spec.tool &&
    receipt.argsDigest === call.spec.argsDigest &&
    receipt.outcome === finished.outcome &&
    receipt.outputDigest === outputDigest;
  return holds ? { ok: true, receipt } : { ok: false, problem: "the receipt is for something else" };
}

function untrustedEnd(problem: string): CallEnd {
  const error = fault(
    ErrorReason.RECEIPT_INVALID,
    { what: problem },
    { message: `what the device sent cannot be trusted: ${problem}` },
  );
  return { ...failedEnd(error), state: CallState.UNKNOWN };
}

function outputOf(finished: ExecutionFinished): JsonObject | undefined {
  if (finished.output.length === 0) return undefined;
  try {
    const value = parseStrictJson(finished.output, { maxBytes: 4 * 1024 * 1024, maxKeys: 500_000 });
    return typeof value === "object" && value !== null && !Array.isArray(value) ? value : undefined;
  } catch {
    return undefined;
  }
}

function decode(statement: Uint8Array): Receipt | undefined {
  try {
    return fromBinary(ReceiptSchema, statement);
  } catch {
    return undefined;
  }
}
