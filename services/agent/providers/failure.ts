import { ModelError, type ModelErrorKind } from "./model.ts";

/** An error that a provider answered, as its SDK throws it. */
interface SdkApiError extends Error {
  readonly status: number | undefined;
  readonly headers: Headers | undefined;
  readonly requestID?: string | null | undefined;
}

type ErrorClass<E extends Error> = abstract new (...args: never[]) => E;

/** What an SDK throws. Both SDKs come from one generator, so these are the same in both. */
export interface SdkErrors<E extends SdkApiError> {
  readonly APIError: ErrorClass<E>;
  readonly APIConnectionError: ErrorClass<Error>;
  readonly APIConnectionTimeoutError: ErrorClass<Error>;
  readonly APIUserAbortError: ErrorClass<Error>;
}

/** What a provider's error says of itself. */
export interface ApiErrorFacts {
  type: string | null | undefined;
  message: string | null | undefined;
  /** The status that it names itself, where it came within a stream. */
  code?: number | undefined;
}

/** Why one try of a turn failed. */
export interface Failure {
  error: ModelError;
  /** Whether the same request may go well later. */
  again: boolean;
  /** How long the provider wants to be left alone, in milliseconds. */
  afterMs?: number;
}

const KINDS: ReadonlyMap<number, ModelErrorKind> = new Map([
  [400, "rejected"],
  [401, "unauthenticated"],
  [403, "unauthenticated"],
  [404, "rejected"],
  [408, "timed_out"],
  [413, "rejected"],
  [422, "rejected"],
  [429, "rate_limited"],
  [503, "overloaded"],
  [504, "timed_out"],
  [529, "overloaded"],
]);

const KINDS_BY_TYPE: ReadonlyMap<string, ModelErrorKind> = new Map([
  ["authentication_error", "unauthenticated"],
  ["invalid_request_error", "rejected"],
  ["overloaded_error", "overloaded"],
  ["permission_error", "unauthenticated"],
  ["rate_limit_error", "rate_limited"],
  ["timeout_error", "timed_out"],
  ["unavailable_error", "overloaded"],
]);

/** What an error may say at most: some servers answer with a page. */
const MAX_MESSAGE = 2000;

/**
 * What an SDK threw, as a failure that can be shown.
 *
 * @param facts reads the provider's own words from an error that it answered.
 * @param key never shown, also where the provider repeats it.
 */
export function failureOf<E extends SdkApiError>(
  thrown: unknown,
  sdk: SdkErrors<E>,
  facts: (error: E) => ApiErrorFacts,
  key: string,
): Failure {
  if (thrown instanceof ModelError) return { error: thrown, again: thrown.kind === "broken" };
  if (thrown instanceof sdk.APIUserAbortError || thrown instanceof sdk.APIConnectionTimeoutError) {
    return { error: new ModelError("timed_out", "the model did not answer in time", { cause: thrown }), again: true };
  }
  if (thrown instanceof sdk.APIConnectionError) {
    const message = `the model's provider cannot be reached: ${causeOf(thrown)}`;
    return { error: new ModelError("unreachable", message, { cause: thrown }), again: true };
  }
  if (thrown instanceof sdk.APIError) return answered(thrown, facts(thrown), key);
  const message = `the model's answer was cut off: ${causeOf(thrown)}`;
  return { error: new ModelError("broken", message, { cause: thrown }), again: true };
}

function answered(thrown: SdkApiError, { type, message, code }: ApiErrorFacts, key: string): Failure {
  const { status = code, headers, requestID } = thrown;
  const kind = KINDS.get(status ?? 0) ?? KINDS_BY_TYPE.get(type ?? "") ?? "broken";
  const parts = [status, type, message?.slice(0, MAX_MESSAGE)].filter((part) => part !== null && part !== undefined);
  const id = requestID ? ` (request ${requestID})` : "";
  const text = `the model's provider answered ${parts.join(" ")}${id}`;
  const safe = key === "" ? text : text.replaceAll(key, "[key]");
  // The cause holds the provider's words as they came, so it goes where they hold the key.
  const error = new ModelError(kind, safe, safe === text ? { status, cause: thrown } : { status });
  const afterMs = retryAfter(headers);
  return { error, again: mayTryAgain(status, headers, kind), ...(afterMs === undefined ? {} : { afterMs }) };
}

function mayTryAgain(status: number | undefined, headers: Headers | undefined, kind: ModelErrorKind): boolean {
  const said = headers?.get("x-should-retry");
  if (said === "true" || said === "false") return said === "true";
  if (status === undefined) return kind === "broken" || kind === "overloaded" || kind === "rate_limited";
  return status === 408 || status === 409 || status === 429 || status >= 500;
}

/** The pause that an answer names, in milliseconds (RFC 9110 section 10.2.3, and the header in milliseconds that both SDKs read). */
function retryAfter(headers: Headers | undefined): number | undefined {
  const exact = Number.parseFloat(headers?.get("retry-after-ms") ?? "");
  if (Number.isFinite(exact)) return Math.max(0, exact);
  const named = headers?.get("retry-after") ?? "";
  const ms = /^\d+(\.\d+)?$/u.test(named) ? Number(named) * 1000 : Date.parse(named) - Date.now();
  return Number.isFinite(ms) ? Math.max(0, ms) : undefined;
}

function causeOf(thrown: unknown): string {
  if (!(thrown instanceof Error)) return "unknown error";
  return thrown.cause instanceof Error ? causeOf(thrown.cause) : thrown.message;
}
