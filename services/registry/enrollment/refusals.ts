import type { ConnectError } from "@connectrpc/connect";
import { ErrorReason } from "../../../gen/ts/reeve/common/v1/error_pb.ts";
import { fault } from "../../../lib/fault/fault.ts";

/** Why a token, or what came with it, is refused: ERROR_REASON_JOIN_REFUSED's "why". */
export type JoinWhy = "unknown" | "used" | "expired" | "name" | "key" | "proof";

const MESSAGES: Readonly<Record<JoinWhy, string>> = {
  unknown: "this token is not known here; ask for a new one",
  used: "this token was used already, by another key or for a device that has its certificate; ask for a new one",
  expired: "this token has expired; ask for a new one",
  name: "the device's name or labels are not those that the token is for",
  key: "the device's manifest is not signed by its own key",
  proof: "the proof that the device holds its keys is not valid",
};

/** The fault for a token, or for what came with it. */
export function joinRefused(why: JoinWhy, message: string = MESSAGES[why]): ConnectError {
  return fault(ErrorReason.JOIN_REFUSED, { why }, { message });
}

/** The fault where too many wrong tokens came from one address. */
export function tooManyWrongTokens(waitMs: number): ConnectError {
  const message = `too many join tokens from this address were wrong; try again in ${Math.ceil(waitMs / 1000)} s`;
  return fault(ErrorReason.RATE_LIMITED, { retry_after_ms: String(waitMs) }, { message });
}

/** A lock as it is kept. */
export interface KeptLock {
  why: string;
  lock_ms: number | null;
  locked_by: string;
}

/** The fault for a device that is locked. */
export function deviceLocked(device: string, lock: KeptLock): ConnectError {
  const { why, lock_ms: sinceMs, locked_by: by } = lock;
  const since = sinceMs === null ? "" : new Date(sinceMs).toISOString();
  const known = [
    `${device} is locked`,
    why === "" ? "" : `(${why})`,
    since === "" ? "" : `since ${since}`,
    by === "" ? "" : `by ${by}`,
  ];
  const message = `${known.filter((part) => part !== "").join(" ")}; an operator can unlock it: reeve device unlock ${device}`;
  return fault(ErrorReason.DEVICE_LOCKED, { device, why, since, by }, { message });
}

/** The fault for what names no enrollment. */
export function noEnrollment(what: string): ConnectError {
  const message = `no device has enrolled under ${JSON.stringify(what)}`;
  return fault(ErrorReason.UNKNOWN_DEVICE, { device: what, available: "" }, { message });
}

/** The fault where the audit log cannot be reached. */
export function notRecorded(cause?: unknown): ConnectError {
  const message =
    "policy does not answer, and without a record nothing changes; the change takes effect once it is recorded";
  return fault(ErrorReason.POLICY_UNAVAILABLE, {}, { message, cause });
}
