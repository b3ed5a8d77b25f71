import { type ErrorDetail, ErrorReason } from "../../gen/ts/reeve/common/v1/error_pb.ts";

type Hint = (metadata: Readonly<Record<string, string>>) => string | undefined;

const HINTS: Readonly<Partial<Record<number, Hint>>> = {
  [ErrorReason.INVALID_INPUT]: ({ field }) => field && `field: ${field}`,
  [ErrorReason.INPUT_TOO_LARGE]: ({ limit, field }) => limit && `the limit is ${limit}${field ? ` for ${field}` : ""}`,
  [ErrorReason.UNKNOWN_TOOL]: available("tools"),
  [ErrorReason.UNKNOWN_DEVICE]: available("devices"),
  [ErrorReason.NOT_FOUND]: ({ resource }) => resource && `not there: ${resource}`,
  [ErrorReason.DEVICE_REQUIRED]: available("devices"),
  [ErrorReason.UNAUTHENTICATED]: () =>
    "the token is not known or has expired: check REEVE_TOKEN, or run `reeve doctor`",
  [ErrorReason.TOOL_NOT_ALLOWED]: ({ allowed }) => allowed && `this token allows: ${allowed}`,
  [ErrorReason.ROLE_REQUIRED]: ({ roles }) => roles && `this needs a token with one of these roles: ${roles}`,
  [ErrorReason.POLICY_DENIED]: ({ rules }) => rules && `rules: ${rules}`,
  [ErrorReason.POLICY_BLOCKED]: () => "no approval can lift this block",
  [ErrorReason.RATE_LIMITED]: ({ retry_after_ms: ms }) => ms && `try again in ${ms} ms`,
  [ErrorReason.QUOTA_EXCEEDED]: ({ quota, limit }) =>
    quota && `the quota ${quota} is ${limit}: wait, or cancel some calls`,
  [ErrorReason.FOUR_EYES]: () => "another person than the caller must decide: `reeve approval list --state pending`",
  [ErrorReason.DEVICE_OFFLINE]: () => "nothing ran; `reeve device list` shows which devices are linked",
  [ErrorReason.POLICY_UNAVAILABLE]: () => "nothing runs without policy and its record; `reeve doctor` looks closer",
  [ErrorReason.NOT_READY]: () => "the service is starting or stopping; try again in a moment",
  [ErrorReason.INTERRUPTED]: () => "what it did is not known: look before doing it again",
  [ErrorReason.FOLLOWER_STALLED]: ({ call_id: id }) => id && `\`reeve call watch ${id}\` follows it to its end`,
  [ErrorReason.RECEIPT_INVALID]: () => "what the device did is not known: look before doing it again",
  [ErrorReason.CALL_ID_REUSED]: () => "a call id stands for one call: use another, or leave it out",
  [ErrorReason.TAMPERED]: () => "`reeve audit verify` shows what was changed",
  [ErrorReason.INTERNAL]: ({ request_id: id }) => id && `the service's log has the cause under request id ${id}`,
};

/** What would help with an error, a line each: only what its message does not say already. */
export function hintsFor({ reason, metadata }: ErrorDetail, message: string): string[] {
  const hint = HINTS[reason]?.(metadata);
  if (hint === undefined || hint === "") return [];
  const said = Object.values(metadata).some((value) => value !== "" && hint.endsWith(value) && message.includes(value));
  return said ? [] : [hint];
}

function available(what: string): Hint {
  return ({ available: names }) => names && `available ${what}: ${names}`;
}
