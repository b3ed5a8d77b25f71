import { create, getOption } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import type { Refusal } from "../gen/ts/reeve/call/v1/call_service_pb.ts";
import {
  type ErrorDetail,
  ErrorDetailSchema,
  ErrorReason,
  ErrorReasonSchema,
} from "../gen/ts/reeve/common/v1/error_pb.ts";
import { code as codeOption } from "../gen/ts/reeve/options/v1/code_pb.ts";

/** An error of Reeve, as far as a caller can act on it. */
export interface ReeveError {
  /** Why: what to branch on. UNSPECIFIED for an error that is not one of Reeve's, such as a broken connection. */
  reason: ErrorReason;
  /** The reason's short name, such as "policy_denied". */
  name: string;
  /** For a person or a model. */
  message: string;
  /** What the reason's comment in error.proto names, by key. */
  metadata: Readonly<Record<string, string>>;
  /** What broke the schema, a field each. */
  violations: readonly { field: string; message: string }[];
}

/** What is known of an error that a call rejected with. */
export function errorOf(error: unknown): ReeveError {
  const detail = detailOf(error);
  const reason = detail?.reason ?? ErrorReason.UNSPECIFIED;
  return {
    reason,
    name: reasonName(reason),
    message: ConnectError.from(error).rawMessage,
    metadata: { ...detail?.metadata },
    violations: (detail?.violations ?? []).map(({ field, message }) => ({ field, message })),
  };
}

/** The typed detail of an error; undefined for an error that is not one of Reeve's. */
export function detailOf(error: unknown): ErrorDetail | undefined {
  return ConnectError.from(error).findDetails(ErrorDetailSchema)[0];
}

/** Why a call failed. UNSPECIFIED for an error that is not one of Reeve's. */
export function reasonOf(error: unknown): ErrorReason {
  return detailOf(error)?.reason ?? ErrorReason.UNSPECIFIED;
}

/** The short name of a reason, such as "policy_denied". */
export function reasonName(reason: ErrorReason): string {
  const name = ErrorReasonSchema.value[reason]?.name ?? "ERROR_REASON_UNSPECIFIED";
  return name.replace("ERROR_REASON_", "").toLowerCase();
}

/** Whether sending the same request again may help: the request was not acted on. */
export function isRetryable(error: unknown): boolean {
  return RETRYABLE.has(ConnectError.from(error).code);
}

const RETRYABLE: ReadonlySet<Code> = new Set([Code.Unavailable, Code.Aborted, Code.Canceled]);

/** An error as a service of Reeve would send it. */
export function createError(
  reason: ErrorReason,
  message: string,
  metadata: Record<string, string> = {},
  cause?: unknown,
): ConnectError {
  return errorWith(create(ErrorDetailSchema, { reason, metadata }), message, cause);
}

/** The error that a refusal on a stream of calls stands for: nothing was written and nothing ran. */
export function refusalError({ error = create(ErrorDetailSchema), message }: Refusal): ConnectError {
  return errorWith(error, message);
}

function errorWith(value: ErrorDetail, message: string, cause?: unknown): ConnectError {
  const code = CODES.get(value.reason) ?? Code.Internal;
  return new ConnectError(message, code, undefined, [{ desc: ErrorDetailSchema, value }], cause);
}

// The numbers of both enums are gRPC's.
const CODES: ReadonlyMap<number, Code> = new Map(
  ErrorReasonSchema.values.map((value) => [value.number, getOption(value, codeOption) as number as Code]),
);

/** A call that a human has to approve. */
export interface ApprovalNeeded {
  approvalId: string;
  /** Sending the call again with this id returns the call's end once it was approved. */
  callId: string;
}

/** The approval that a call waits for; undefined for any other error. */
export function approvalOf(error: unknown): ApprovalNeeded | undefined {
  const { reason, metadata } = errorOf(error);
  if (reason !== ErrorReason.APPROVAL_REQUIRED) return undefined;
  return { approvalId: metadata.approval_id ?? "", callId: metadata.call_id ?? "" };
}
