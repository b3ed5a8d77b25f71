import type { JsonObject } from "@bufbuild/protobuf";

/** The longest that a caller can let a call run, in milliseconds. */
const MAX_TIMEOUT_MS = 3_600_000;

/**
 * The longest that the caller lets the call run, in milliseconds; 0 where its arguments do not say. An announced tool may
 * have a field of that name that means something else: what is no such time does not count.
 */
export function requestedTimeoutMs({ timeoutMs }: JsonObject): number {
  if (typeof timeoutMs !== "number" || !Number.isInteger(timeoutMs)) return 0;
  return timeoutMs > 0 && timeoutMs <= MAX_TIMEOUT_MS ? timeoutMs : 0;
}
