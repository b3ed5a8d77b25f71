import { create, getOption } from "@bufbuild/protobuf";
import { Code, ConnectError } from "@connectrpc/connect";
import { BadRequestSchema, ErrorInfoSchema } from "../../gen/ts/google/rpc/error_details_pb.ts";
import {
  type ErrorDetail,
  ErrorDetailSchema,
  ErrorReason,
  ErrorReasonSchema,
} from "../../gen/ts/reeve/common/v1/error_pb.ts";
import { code as codeOption } from "../../gen/ts/reeve/options/v1/code_pb.ts";

/** What a fault carries besides its reason. */
export interface FaultOptions {
  /** For a person or a model; safe to show. Default: the reason's name in words. */
  message?: string;
  /** What broke the schema, a field each. */
  violations?: { field: string; message: string }[];
  /** Kept for the log; never sent. */
  cause?: unknown;
}

/** Who defines the reasons, in google.rpc.ErrorInfo. */
const DOMAIN = "reeve";

/**
 * An error that a caller can act on: a reason of the one enum, its metadata, and the code that error.proto gives the
 * reason. Libraries that do not know Reeve's own detail read the same from google.rpc.ErrorInfo and BadRequest beside it.
 * Handlers throw these; anything else that is thrown becomes ERROR_REASON_INTERNAL.
 */
export function fault(
  reason: ErrorReason,
  metadata: Record<string, string> = {},
  options: FaultOptions = {},
): ConnectError {
  const { violations = [], cause, message = reasonName(reason).replaceAll("_", " ") } = options;
  const fields = violations.map(({ field, message: description }) => ({ field, description }));
  return new ConnectError(
    message,
    codeOf(reason),
    undefined,
    [
      { desc: ErrorDetailSchema, value: create(ErrorDetailSchema, { reason, metadata, violations }) },
      { desc: ErrorInfoSchema, value: { reason: reasonName(reason).toUpperCase(), domain: DOMAIN, metadata } },
      ...(fields.length === 0 ? [] : [{ desc: BadRequestSchema, value: { fieldViolations: fields } }]),
    ],
    cause,
  );
}

/** The code of a reason. A reason from a newer peer is Internal. */
export function codeOf(reason: ErrorReason): Code {
  return CODES.get(reason) ?? Code.Internal;
}

// The numbers of both enums are gRPC's.
const CODES: ReadonlyMap<number, Code> = new Map(
  ErrorReasonSchema.values.map((value) => [value.number, getOption(value, codeOption) as number as Code]),
);

/** The typed detail of an error, whether it was made here or came over the wire. */
export function faultDetail(error: unknown): ErrorDetail | undefined {
  if (!(error instanceof ConnectError)) return undefined;
  return error.findDetails(ErrorDetailSchema)[0];
}

/** The reason of an error; ERROR_REASON_INTERNAL for anything that is no fault. */
export function reasonOf(error: unknown): ErrorReason {
  const reason = faultDetail(error)?.reason;
  if (reason !== undefined && reason !== ErrorReason.UNSPECIFIED) return reason;
  return ErrorReason.INTERNAL;
}

/** The short name of a reason, such as "policy_denied". */
export function reasonName(reason: ErrorReason): string {
  const name = ErrorReasonSchema.value[reason]?.name ?? "ERROR_REASON_INTERNAL";
  return name.replace("ERROR_REASON_", "").toLowerCase();
}

/** True where trying the same request again may help: the request was not acted on. */
export function isRetryable(error: unknown): boolean {
  const code = ConnectError.from(error).code;
  return code === Code.Unavailable || code === Code.Aborted || code === Code.Canceled;
}
