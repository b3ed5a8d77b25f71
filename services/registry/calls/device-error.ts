import { create } from "@bufbuild/protobuf";
import { type ErrorDetail, ErrorDetailSchema, ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import type { ExecutionFinished } from "../../../gen/ts/reeve/device/v1/device_agent_service_pb.ts";
import { ExecutionOutcome } from "../../../gen/ts/reeve/device/v1/receipt_pb.ts";
import { DEVICE_REASONS } from "../../../lib/fault/device-reasons.ts";
import { errorBytes } from "../../../lib/fault/error-bytes.ts";
import { cleanOutput } from "../../../lib/sanitize/sanitize.ts";

/** The most characters of a device's message. What an announced service or a program said is shorter. */
export const MAX_MESSAGE = 4096;

/** About the most bytes of a device's metadata and violations: they go to callers in the headers of a response. */
export const MAX_DETAIL_BYTES = 4096;

const MAX_ENTRIES = 16;
const MAX_VALUE = 1024;
const KEY = /^[a-z][a-z0-9_]{0,63}$/i;

/** The reason where the device gives none that is its to give; RECEIPT_INVALID where the outcome implies none either. */
const REASON_OF = new Map<ExecutionOutcome, ErrorReason>([
  [ExecutionOutcome.FAILED, ErrorReason.TOOL_FAILED],
  [ExecutionOutcome.TIMED_OUT, ErrorReason.TIMED_OUT],
  [ExecutionOutcome.CANCELED, ErrorReason.CANCELED],
  [ExecutionOutcome.INTERRUPTED, ErrorReason.INTERRUPTED],
  [ExecutionOutcome.NOT_STARTED, ErrorReason.NOT_STARTED],
]);

/** The error of a call that did not succeed, as a device reports it: sanitized, and no more of it than callers can use. */
export function deviceError({ error, outcome, message }: Pick<ExecutionFinished, "error" | "outcome" | "message">): {
  error: ErrorDetail;
  message: string;
} {
  const said = bounded(message, MAX_MESSAGE);
  if (error === undefined || !DEVICE_REASONS.has(error.reason)) return { error: replaced(outcome), message: said };
  const clean = create(ErrorDetailSchema, { reason: error.reason });
  addMetadata(clean, error);
  if (error.reason === ErrorReason.INVALID_INPUT) addViolations(clean, error);
  return { error: clean, message: said };
}

function replaced(outcome: ExecutionOutcome): ErrorDetail {
  const reason = REASON_OF.get(outcome) ?? ErrorReason.RECEIPT_INVALID;
  const metadata: Record<string, string> = reason === ErrorReason.RECEIPT_INVALID ? { what: "reason" } : {};
  return create(ErrorDetailSchema, { reason, metadata });
}

function addMetadata(clean: ErrorDetail, { metadata }: ErrorDetail): void {
  for (const [key, value] of Object.entries(metadata).slice(0, MAX_ENTRIES)) {
    if (!KEY.test(key)) continue;
    clean.metadata[key] = bounded(value, MAX_VALUE);
    if (errorBytes(clean) <= MAX_DETAIL_BYTES) continue;
    delete clean.metadata[key];
    return;
  }
}

function addViolations(clean: ErrorDetail, { violations }: ErrorDetail): void {
  for (const { $typeName, field, message } of violations.slice(0, MAX_ENTRIES)) {
    clean.violations.push({ $typeName, field: bounded(field, MAX_VALUE), message: bounded(message, MAX_VALUE) });
    if (errorBytes(clean) <= MAX_DETAIL_BYTES) continue;
    clean.violations.pop();
    return;
  }
}

/** Cleaned before it is cut, so that no half of a secret is left. */
function bounded(text: string, most: number): string {
  const { text: clean } = cleanOutput(text);
  return clean.length > most ? `${clean.slice(0, most - 1).toWellFormed()}…` : clean;
}
