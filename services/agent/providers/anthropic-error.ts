import { APIConnectionError, APIConnectionTimeoutError, APIError, APIUserAbortError } from "@anthropic-ai/sdk";
import { ModelError, type ModelErrorKind } from "./model.ts";

const KINDS: Record<number, ModelErrorKind> = {
  400: "rejected",
  401: "unauthenticated",
  403: "unauthenticated",
  404: "rejected",
  408: "timed_out",
  413: "rejected",
  422: "rejected",
  429: "rate_limited",
  503: "overloaded",
  504: "timed_out",
  529: "overloaded",
};

const KINDS_BY_TYPE: ReadonlyMap<string, ModelErrorKind> = new Map(
  Object.entries<ModelErrorKind>({
    authentication_error: "unauthenticated",
    invalid_request_error: "rejected",
    overloaded_error: "overloaded",
    permission_error: "unauthenticated",
    rate_limit_error: "rate_limited",
    timeout_error: "timed_out",
  }),
);

/**
 * What the SDK threw, as a ModelError.
 *
 * @param signal the run's own signal: distinguishes a canceled run from a turn that took too long.
 */
export function modelError(thrown: unknown, signal: AbortSignal, timeoutMs: number): ModelError {
  if (signal.aborted) return new ModelError("canceled", "the run was canceled", { cause: thrown });
  if (thrown instanceof APIUserAbortError || thrown instanceof APIConnectionTimeoutError)
    return timedOut(timeoutMs, thrown);
  if (thrown instanceof APIConnectionError) {
    return new ModelError("unreachable", `the model's provider cannot be reached: ${causeOf(thrown)}`, {
      cause: thrown,
    });
  }
  if (thrown instanceof APIError) return answered(thrown);
  if (thrown instanceof ModelError) return thrown;
  return new ModelError("broken", `the model's answer was cut off: ${causeOf(thrown)}`, { cause: thrown });
}

/** A turn that took longer than it may. */
export function timedOut(timeoutMs: number, cause?: unknown): ModelError {
  return new ModelError("timed_out", `the model did not answer within ${timeoutMs} ms`, { cause });
}

function answered(error: InstanceType<typeof APIError>): ModelError {
  const byType = error.type === null ? undefined : KINDS_BY_TYPE.get(error.type);
  const kind = KINDS[error.status ?? 0] ?? byType ?? "broken";
  const parts = [error.status, error.type, error.apiMessage].filter((part) => part !== null && part !== undefined);
  const id = error.requestID ? ` (request ${error.requestID})` : "";
  return new ModelError(kind, `the model's provider answered ${parts.join(" ")}${id}`, {
    status: error.status,
    cause: error,
  });
}

function causeOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return "unknown error";
  return thrown.cause instanceof Error ? causeOf(thrown.cause) : thrown.message;
}
